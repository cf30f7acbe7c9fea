import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeBus, connectBus, ensureStreams, publish } from "@herald/bus";
import {
  maxGroupSize,
  newNotificationIds,
  newProjectId,
  SendGroupV1,
  SendNotification,
  sendGroupOf,
} from "@herald/contracts";
import { createGroupCommit, createLogger } from "@herald/kit";
import { startNats } from "@herald/provision";
import express from "express";
import { apnsBody, apnsHeaders, connectFloor } from "./floor-client.ts";
import { listenFloor } from "./listen-floor.ts";

/**
 * The minimum cost of a send to one device: express 5 with its own body parser, the schema of the body, and one publish per group of
 * concurrent sends into a stream on disk, whose ack is awaited; then, if a sink is given, the push by `node:http2`. No authentication, no
 * limits, no database, no telemetry. A process with its own broker: `send-floor.ts [<url of the sink>]`, the CA of the sink in BENCH_CA.
 * Prints `{ url, pid }`.
 */

const [sinkUrl] = process.argv.slice(2);
const dataDir = await mkdtemp(join(tmpdir(), "herald-floor-"));
const nats = await startNats({ dataDir, port: 0, env: process.env, progress: () => {} });
const log = createLogger({ service: "floor", level: "error" });
const bus = await connectBus({ url: nats.url, name: "floor", log });
await ensureStreams(bus, { replicas: 1, sizeFactor: 0.1 });
const client = sinkUrl === undefined ? undefined : await connectFloor(sinkUrl);
const projectId = newProjectId(new Date());

type Content = Omit<SendNotification["notification"], "dry_run" | "template" | "variables" | "locale">;

const publishGroup = async (contents: readonly Content[]) => {
  const now = new Date();
  const ids = newNotificationIds(now, contents.length);
  const [first] = ids;
  if (first === undefined) return [];
  const acceptedAt = now.toISOString();
  const sends = contents.map((content, index) => ({
    projectId,
    notificationId: ids[index] ?? first,
    content: { ...content, targets: content.targets ?? [], recipients: undefined },
    acceptedAt,
    expiresAt: new Date(now.getTime() + (content.ttl ?? 0) * 1000).toISOString(),
  }));
  const groupId = sendGroupOf(first);
  await publish(bus, SendGroupV1, { groupId, sends }, { id: groupId });
  return ids;
};
const commit = createGroupCommit(publishGroup, { max: maxGroupSize, concurrent: 1 });

/** Resolves when the send is on disk, before the push. */
const accept = async (body: unknown) => {
  const {
    dry_run: _,
    template: _template,
    variables: _variables,
    locale: _locale,
    ...content
  } = SendNotification.parse(body).notification;
  const id = await commit(content);
  const { title = "", body: text = "" } = content;
  void client?.push(apnsHeaders, apnsBody({ title, body: text }));
  return { id };
};

const app = express();
app.disable("x-powered-by");
app.set("etag", false);
app.post("/api/v1/notifications", express.json(), async (request, response) => {
  const { id } = await accept(request.body);
  response.status(202).json({ data: { id, status: "accepted" } });
});
app.post("/api/v1/notifications/batch", express.json({ limit: "4mb" }), async (request, response) => {
  const { notifications } = request.body as { notifications: unknown[] };
  response.status(202).json({ data: await Promise.all(notifications.map((notification) => accept({ notification }))) });
});
listenFloor(app, async () => {
  client?.close();
  await closeBus(bus);
  await nats.stop();
  await rm(dataDir, { recursive: true, force: true });
});
