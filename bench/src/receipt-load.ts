import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { MongoClient } from "mongodb";
import { httpRequest } from "./http-request.ts";
import type { ReceiptLoad } from "./receipts.ts";
import { countedBy } from "./sinks.ts";

/**
 * Reports that a broadcast arrived, once from each device that can, as phones behind a proxy do: each at random within the seconds after its
 * push, in a request of its own, over connections that stay open and have one request at a time. A process of its own, with the keys in
 * BENCH_OPEN_KEYS: `receipt-load.ts <ReceiptLoad as JSON>`. Prints the number of devices when it is ready, reads the notification's id from
 * its input, and prints `{ statuses, cpuSeconds }` at its end.
 */

/** Receipts of the same moment are sent together. */
const tickMs = 20;
const maxConnections = 400;
/** On Linux every address of 127.0.0.0/8 is local. Phones have an address each. */
const addressOf = (connection: number): string => `127.2.${connection >> 7}.${(connection % 128) + 1}`;

const { gateway, mongoUrl, projectId, sink, seconds }: ReceiptLoad = JSON.parse(process.argv[2] ?? "");
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
process.stdout.write(`${devices.length}\n`);

const [notification] = (await once(createInterface({ input: process.stdin }), "line")) as [NotificationId];
const sign = tokens.signer(
  { projectId: projectId as ProjectId, notificationId: notification, platform: "ios" },
  new Date(),
);
const path = `/api/v1/notifications/${notification}/received`;
const requestOf = (device: DeviceId): string =>
  httpRequest({ method: "PUT", to, path, body: { project_id: projectId, token: sign(device, true) } });

const statuses: Record<string, number> = {};
let answered = 0;
const waiting: DeviceId[] = [];
const idle: (() => void)[] = [];
let connections = 0;

/** Sends the receipts that wait, one at a time, and is idle when none is left. */
const openConnection = (): void => {
  const localAddress = addressOf(connections++);
  const socket = connect({ port: Number(to.port), host: to.hostname, localAddress, noDelay: true });
  const next = () => {
    const device = waiting.pop();
    if (device === undefined) idle.push(next);
    else socket.write(requestOf(device));
  };
  socket.on("connect", next).setEncoding("latin1");
  socket.on("data", (answer: string) => {
    const status = answer.slice("HTTP/1.1 ".length, "HTTP/1.1 204".length);
    statuses[status] = (statuses[status] ?? 0) + 1;
    answered++;
    // An answer with a body is a failure, which the row reports.
    if (status === "204") next();
    else socket.destroy();
  });
  socket.on("close", () => connections--);
};

const dueAt = new Map<number, DeviceId[]>();
let pushed = 0;
const begun = performance.now();
const cpu = process.cpuUsage();
for (let tick = 0; answered < devices.length; tick++) {
  await delay(Math.max(0, begun + tick * tickMs - performance.now()));
  const pushes = pushed < devices.length ? (await countedBy(sink)).pushes : pushed;
  for (; pushed < Math.min(pushes, devices.length); pushed++) {
    const due = tick + Math.floor((Math.random() * seconds * 1000) / tickMs);
    const same = dueAt.get(due) ?? [];
    same.push(devices[pushed] as DeviceId);
    dueAt.set(due, same);
  }
  waiting.push(...(dueAt.get(tick) ?? []));
  dueAt.delete(tick);
  for (const next of idle.splice(0, waiting.length)) next();
  for (let more = waiting.length; more > 0 && connections < maxConnections; more--) openConnection();
}
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(`${JSON.stringify({ statuses, cpuSeconds: (user + system) / 1e6 })}\n`, () => process.exit());
