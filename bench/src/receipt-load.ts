import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { MongoClient } from "mongodb";
import { converse } from "./converse.ts";
import { httpRequest } from "./http-request.ts";
import type { ReceiptLoad } from "./receipts.ts";

/**
 * Reports that a broadcast arrived, once from each device that can, as phones do: at random within the seconds of the broadcast and those
 * that its pushes ask for. A process of its own, with the keys in BENCH_OPEN_KEYS: `receipt-load.ts <ReceiptLoad as JSON>`. Prints the
 * number of devices when it is ready, reads the notification's id from its input, and prints `{ statuses }` at its end.
 */

/** The receipts of this time share a connection. */
const tickMs = 50;
/** Unanswered receipts per connection. */
const ahead = 20;

const { gateway, mongoUrl, projectId, seconds }: ReceiptLoad = JSON.parse(process.argv[2] ?? "");
const [broadcastSeconds, receiptSeconds] = seconds;
const parsed = parseOpenKeys(process.env.BENCH_OPEN_KEYS ?? "");
if ("problem" in parsed) throw new Error(parsed.problem);
const tokens = createOpenTokens(parsed.keys);
const to = new URL(gateway);

const capableDevices = async (): Promise<DeviceId[]> => {
  const mongo = await new MongoClient(mongoUrl).connect();
  const devices = mongo.db("herald_registry").collection<{ _id: DeviceId }>("devices");
  const found = await devices
    .find({ projectId, capabilities: "receipts" })
    .project<{ _id: DeviceId }>({ _id: 1 })
    .toArray();
  await mongo.close();
  return found.map(({ _id }) => _id);
};

const devices = await capableDevices();
const ticks = Math.ceil(((broadcastSeconds + receiptSeconds) * 1000) / tickMs) + 1;
const dueAt: DeviceId[][] = Array.from({ length: ticks }, () => []);
for (const device of devices) {
  const dueMs = 1000 * (Math.random() * broadcastSeconds + Math.random() * receiptSeconds);
  dueAt[Math.floor(dueMs / tickMs)]?.push(device);
}
process.stdout.write(`${devices.length}\n`);

const [notification] = (await once(createInterface({ input: process.stdin }), "line")) as [NotificationId];
const begin = performance.now();
const sign = tokens.signer(
  { projectId: projectId as ProjectId, notificationId: notification, platform: "ios" },
  new Date(),
);
const path = `/api/v1/notifications/${notification}/received`;
const requestOf = (device: DeviceId): string =>
  httpRequest({ method: "PUT", to, path, body: { project_id: projectId, token: sign(device) } });

const statuses: Record<string, number> = {};
const onAnswer = (_index: number, status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};
const reporting: Promise<void>[] = [];
for (const [tick, due] of dueAt.entries()) {
  await delay(Math.max(0, begin + tick * tickMs - performance.now()));
  if (due.length === 0) continue;
  const requests = due.map(requestOf);
  const allowed = (answered: number) => answered + ahead;
  reporting.push(converse({ port: Number(to.port), host: to.hostname }, { requests, allowed, onAnswer }));
}
await Promise.all(reporting);
process.stdin.destroy();
process.stdout.write(`${JSON.stringify({ statuses })}\n`);
