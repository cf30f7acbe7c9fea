import { connect } from "node:net";
import { newDeviceId, newNotificationId, type ProjectId } from "@herald/contracts";
import { createOpenTokens, parseOpenKeys } from "@herald/payload";

/**
 * Reports opens over plain sockets, many at a time, as fast as they are answered: a client that costs little. A process of its own:
 * `open-load.ts <gateway> <project> <count> true|forged`, keys in BENCH_OPEN_KEYS. Prints `{ notification, seconds, statuses }`.
 */

const connections = 20;

const [gateway = "", projectId = "", count = "0", kind = "true"] = process.argv.slice(2);
/**
 * Requests on one connection that are not answered yet. True ones stand for many phones: together more than one group of opens.
 * A flood has one, as every client without pipelining: what waits in its queue would only be added to everybody's latency.
 */
const ahead = kind === "forged" ? 1 : 20;

const parsed = parseOpenKeys(process.env.BENCH_OPEN_KEYS ?? "");
if ("problem" in parsed) throw new Error(parsed.problem);
const tokens = createOpenTokens(parsed.keys);
const now = new Date();
const notificationId = newNotificationId(now);
const { hostname, port, host } = new URL(gateway);

const requestOf = (): string => {
  const claim = {
    projectId: projectId as ProjectId,
    notificationId,
    deviceId: newDeviceId(now),
    platform: "ios",
  } as const;
  const signed = tokens.sign(claim, now);
  const token = kind === "forged" ? `${signed.slice(0, -4)}AAAA` : signed;
  const body = JSON.stringify({ project_id: projectId, token });
  return `PUT /api/v1/notifications/${notificationId}/open HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};

const perConnection = Math.ceil(Number(count) / connections);
// Made beforehand: signing is the sender's work, and would be measured with the rest.
const requests = Array.from({ length: perConnection * connections }, requestOf);
const statuses: Record<string, number> = {};

const run = (mine: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let sent = 0;
    let answered = 0;
    let rest = "";
    const more = () => {
      const to = Math.min(mine.length, answered + ahead);
      if (to > sent) socket.write(mine.slice(sent, to).join(""));
      sent = Math.max(sent, to);
    };
    socket.on("error", reject).on("connect", more);
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      const text = rest + chunk;
      let end = 0;
      for (const { 1: status = "", index } of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        statuses[status] = (statuses[status] ?? 0) + 1;
        answered++;
        end = index + "HTTP/1.1 200 ".length;
      }
      // A status line may be cut in two by the next chunk's border.
      rest = text.slice(Math.max(end, text.length - "HTTP/1.1 200".length));
      if (answered < mine.length) more();
      else {
        socket.destroy();
        resolve();
      }
    });
  });

const begin = performance.now();
await Promise.all(
  Array.from({ length: connections }, (_, index) =>
    run(requests.slice(index * perConnection, (index + 1) * perConnection)),
  ),
);
const seconds = (performance.now() - begin) / 1000;
process.stdout.write(`${JSON.stringify({ notification: notificationId, seconds, statuses })}\n`);
