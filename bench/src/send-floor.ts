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
import { startNats } from "@herald/local-stack";
import express from "express";
import { apnsBody, apnsHeaders, connectFloor } from "./floor-client.ts";
import { listenFloor } from "./listen-floor.ts";

/**
 * What a send to one device costs at the least: express 5 with its own body parser, the schema of the body, one publish for those of
 * the same moment, whose ack is awaited, into a stream on disk; then, where a sink is named, the push by `node:http2`. A broker and a
 * process of its own: `send-floor.ts [<url of the sink>]`, its CA in BENCH_CA. No authentication, no limits, no database, no
 * telemetry. Prints `{ url, pid }`.
 */

const [sinkUrl] = process.argv.slice(2);
const dataDir = await mkdtemp(join(tmpdir(), "herald-floor-"));
const nats = await startNats({ dataDir, port: 0, env: process.env, progress: () => {} });
const log = createLogger({ service: "floor", level: "error" });
const bus = await connectBus({ url: nats.url, name: "floor", log });
await ensureStreams(bus, { replicas: 1, sizeFactor: 0.1 });
const client = sinkUrl === undefined ? undefined : await connectFloor(sinkUrl);
const projectId = newProjectId(new Date());

type Content = Omit<SendNotification["notification"], "dry_run">;

const publishGroup = async (contents: readonly Content[]) => {
  const now = new Date();
  const ids = newNotificationIds(now, contents.length);
  const [first] = ids;
  if (first === undefined) return [];
  const acceptedAt = now.toISOString();
  const sends = contents.map((content, index) => ({
    projectId,
    notificationId: ids[index] ?? first,
    content,
    acceptedAt,
    expiresAt: new Date(now.getTime() + (content.ttl ?? 0) * 1000).toISOString(),
  }));
  const groupId = sendGroupOf(first);
  await publish(bus, SendGroupV1, { groupId, sends }, { id: groupId });
  return ids;
};
const commit = createGroupCommit(publishGroup, { max: maxGroupSize, concurrent: 1 });

/** Resolves when the send is on disk; the push comes after. */
const accept = async (body: unknown) => {
  const { dry_run: _, ...content } = SendNotification.parse(body).notification;
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
