import {
  Identification,
  newDeviceCredential,
  newDeviceId,
  newProjectId,
  pushTokenHash,
  RegisterDevice,
  secretHash,
} from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { connectMongo, ensureIndexes, indexName, inOneCommand, insertBatched } from "@herald/mongo";
import express from "express";
import { newDevice } from "../../services/registry/src/domain/device-change.ts";
import {
  type DeviceDocument,
  deviceIndexes,
  newDeviceDocument,
} from "../../services/registry/src/stores/device-document.ts";
import { listenFloor } from "./listen-floor.ts";

/**
 * The minimum cost of a registration: express 5 with its own body parser, the schema of the body, and one grouped insert of the document
 * with Herald's indexes; for a known device one grouped read. No authentication, no limits, no broker, no telemetry. A process of its
 * own: `register-floor.ts <url of the database>`. Prints `{ url, pid }`.
 */

const [url = ""] = process.argv.slice(2);
const log = createLogger({ service: "floor", level: "error" });
const mongo = connectMongo({ url, database: "bench_register_floor", log, appName: "floor" });
const devices = mongo.db.collection<DeviceDocument>("devices");
await mongo.db.dropDatabase();
await ensureIndexes(devices, Object.values(deviceIndexes));
const projectId = newProjectId(new Date());
const insert = insertBatched(devices);
const find = inOneCommand<string, DeviceDocument | undefined>(async (hashes) => {
  const found = await devices
    .find(
      { projectId, platform: "ios", tokenHash: { $in: [...hashes] } },
      { hint: indexName(deviceIndexes.token), batchSize: hashes.length + 1 },
    )
    .toArray();
  const byHash = new Map(found.map((device) => [device.tokenHash, device]));
  return hashes.map((hash) => byHash.get(hash));
});

const app = express();
app.disable("x-powered-by");
app.set("etag", false);
app.post("/api/v1/devices", express.json(), async (request, response) => {
  const { topics = [], token, platform, metadata } = RegisterDevice.parse(request.body).device;
  const now = new Date();
  const id = newDeviceId(now);
  const credential = newDeviceCredential(projectId, id);
  const planned = newDevice(platform, { token, topics, metadata }, now);
  if (!("state" in planned)) throw new Error("the floor takes valid devices only");
  await insert(newDeviceDocument(projectId, id, planned.state, { credentialHash: secretHash(credential), at: now }));
  response.status(201).json({ data: { id, token, platform, metadata, topics }, credential });
});
app.put("/api/v1/identification", express.json(), async (request, response) => {
  const { identifier } = Identification.parse(request.body);
  const device = await find(pushTokenHash(identifier));
  response.status(device ? 200 : 404).json({ data: { id: device?._id, status: device?.status } });
});
listenFloor(app, () => mongo.close());
