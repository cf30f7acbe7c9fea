import { newDeviceId, newNotificationId, type ProjectId } from "@herald/contracts";
import { createOpenTokens, parseOpenKeys } from "@herald/payload";
import { converse } from "./converse.ts";
import { httpRequest } from "./http-request.ts";

/**
 * Reports opens over plain sockets: a client that costs little. A process of its own, with the keys in BENCH_OPEN_KEYS:
 * `open-load.ts <gateway> <project> <count> true` as fast as they are answered,
 * `open-load.ts <gateway> <project> <count> forged <a second>` at that pace, from as many addresses as none is over its limit.
 * Prints `{ notification, seconds, statuses }`.
 */

const connections = 20;

const [gateway = "", projectId = "", count = "0", kind = "true", pace = "1000"] = process.argv.slice(2);
/** True opens on one connection that are not answered yet: they stand for many phones, together more than one group of opens. */
const ahead = 20;
/** Less than the 100 refusals that an address is told the reason of. */
const perAddress = 90;

const parsed = parseOpenKeys(process.env.BENCH_OPEN_KEYS ?? "");
if ("problem" in parsed) throw new Error(parsed.problem);
const tokens = createOpenTokens(parsed.keys);
const now = new Date();
const notificationId = newNotificationId(now);
const gatewayUrl = new URL(gateway);

const requestOf = (): string => {
  const claim = {
    projectId: projectId as ProjectId,
    notificationId,
    deviceId: newDeviceId(now),
    platform: "ios",
  } as const;
  const signed = tokens.sign(claim, now);
  const token = kind === "forged" ? `${signed.slice(0, -4)}AAAA` : signed;
  const path = `/api/v1/notifications/${notificationId}/open`;
  return httpRequest({ method: "PUT", to: gatewayUrl, path, body: { project_id: projectId, token } });
};

const perConnection = Math.ceil(Number(count) / connections);
// Made beforehand: signing is the sender's work, and would be measured with the rest.
const requests = Array.from({ length: perConnection * connections }, requestOf);
const statuses: Record<string, number> = {};

const onAnswer = (_index: number, status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};
const to = { port: Number(gatewayUrl.port), host: gatewayUrl.hostname };

const begin = performance.now();

/** One address after the other, each with a connection of its own, at a pace that the answers do not slow down. */
const flood = async (mine: readonly string[], lane: number): Promise<void> => {
  const everyMs = (1000 * connections) / Number(pace);
  for (let from = 0; from < mine.length; from += perAddress) {
    const due = () => Math.floor((performance.now() - begin) / everyMs) - from;
    // All of 127.0.0.0/8 is this machine, on Linux.
    const localAddress = `127.1.${lane}.${from / perAddress + 1}`;
    await converse({ ...to, localAddress }, { requests: mine.slice(from, from + perAddress), allowed: due, onAnswer });
  }
};

await Promise.all(
  Array.from({ length: connections }, (_, lane) => {
    const mine = requests.slice(lane * perConnection, (lane + 1) * perConnection);
    return kind === "forged"
      ? flood(mine, lane)
      : converse(to, { requests: mine, allowed: (answered) => answered + ahead, onAnswer });
  }),
);
const seconds = (performance.now() - begin) / 1000;
process.stdout.write(`${JSON.stringify({ notification: notificationId, seconds, statuses })}\n`);
