import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeBus, connectBus, ensureStreams, publish } from "@herald/bus";
import { newNotificationId, newProjectId, SendNotification, SendV1 } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { startNats } from "@herald/local-stack";
import express from "express";

/**
 * What accepting a send costs at the least: express 5 with its own body parser, the schema of the body, and one publish whose ack is
 * awaited, into a stream on disk. A broker and a process of its own; no authentication, no limits, no telemetry. Prints `{ url, pid }`.
 */

const dataDir = await mkdtemp(join(tmpdir(), "herald-floor-"));
const nats = await startNats({ dataDir, port: 0, env: process.env, progress: () => {} });
const log = createLogger({ service: "floor", level: "error" });
const bus = await connectBus({ url: nats.url, name: "floor", log });
await ensureStreams(bus, { replicas: 1, sizeFactor: 0.1 });
const projectId = newProjectId(new Date());

const app = express();
app.disable("x-powered-by");
app.set("etag", false);
app.post("/api/v1/notifications", express.json(), async (request, response) => {
  const { dry_run: _, ...content } = SendNotification.parse(request.body).notification;
  const now = new Date();
  const notificationId = newNotificationId(now);
  const acceptedAt = now.toISOString();
  const expiresAt = new Date(now.getTime() + (content.ttl ?? 0) * 1000).toISOString();
  await publish(bus, SendV1, { projectId, notificationId, content, acceptedAt, expiresAt }, { id: notificationId });
  response.status(202).json({ data: { id: notificationId, status: "accepted" } });
});
const server = app.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid })}\n`);
});
process.once("SIGTERM", async () => {
  server.closeAllConnections();
  server.close();
  await closeBus(bus);
  await nats.stop();
  await rm(dataDir, { recursive: true, force: true });
});
