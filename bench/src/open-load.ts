import { newDeviceId, newNotificationId, type ProjectId } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { converse } from "./converse.ts";
import { httpRequest } from "./http-request.ts";

/**
 * Reports opens over plain sockets, which cost little CPU. A process of its own, with the keys in BENCH_OPEN_KEYS:
 * `open-load.ts <gateway> <project> <count> true` sends as fast as Herald answers,
 * `open-load.ts <gateway> <project> <count> forged <a second>` at this pace, from so many addresses that none exceeds its limit.
 * Prints `{ notification, seconds, statuses }`.
 */

const connections = 20;

const [gateway = "", projectId = "", count = "0", kind = "true", pace = "1000"] = process.argv.slice(2);
/** Unanswered true opens per connection. They simulate many phones, and together exceed one group of opens. */
const ahead = 20;
/** Forged opens per address, below the limit of 100 failures, so that each gets the same answer. */
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
// Built before the measurement, because signing is not the client's work.
const requests = Array.from({ length: perConnection * connections }, requestOf);
const statuses: Record<string, number> = {};

const onAnswer = (_index: number, status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};
const to = { port: Number(gatewayUrl.port), host: gatewayUrl.hostname };

const begin = performance.now();

/** Uses one address after the other, each with its own connection, at a pace that slow answers do not change. */
const flood = async (mine: readonly string[], lane: number): Promise<void> => {
  const everyMs = (1000 * connections) / Number(pace);
  for (let from = 0; from < mine.length; from += perAddress) {
    const due = () => Math.floor((performance.now() - begin) / everyMs) - from;
    // On Linux every address of 127.0.0.0/8 is local.
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
