import { converse } from "./converse.ts";

/**
 * Sends single notifications over plain sockets. A process of its own: `send-load.ts <gateway> <token> <count> <a second> <targets>`,
 * at a pace of 0 one on each connection at a time, as fast as they are answered. Prints `{ seconds, statuses, latencies }`, those in
 * ms; at a pace from when a send was due, so that one that waits behind another counts its waiting.
 */

const connections = 50;

const [gateway = "", token = "", count = "0", pace = "0", targets = ""] = process.argv.slice(2);
const { hostname, port, host } = new URL(gateway);
const each = targets.split(",").map((target) => {
  const notification = { title: "Hello", body: "World", targets: [target], link_to: "/hello", ttl: 3_600 };
  const body = JSON.stringify({ notification });
  return `POST /api/v1/notifications HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
});
const perConnection = Math.ceil(Number(count) / connections);
const requestsOf = (lane: number) =>
  Array.from({ length: perConnection }, (_, index) => each[(index * connections + lane) % each.length] ?? "");
const statuses: Record<string, number> = {};
const latencies: number[] = [];
const everyMs = Number(pace) > 0 ? 1000 / Number(pace) : undefined;
const begin = performance.now();

await Promise.all(
  Array.from({ length: connections }, (_, lane) => {
    const dueAt = (index: number) => begin + (index * connections + lane) * (everyMs ?? 0);
    const allowed = (answered: number): number => {
      if (everyMs === undefined) return answered + 1;
      return Math.floor(((performance.now() - begin) / everyMs - lane) / connections) + 1;
    };
    const onAnswer = (index: number, status: string) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (everyMs !== undefined) latencies.push(performance.now() - dueAt(index));
    };
    return converse({ port: Number(port), host: hostname }, { requests: requestsOf(lane), allowed, onAnswer });
  }),
);
const seconds = (performance.now() - begin) / 1000;
process.stdout.write(`${JSON.stringify({ seconds, statuses, latencies })}\n`);
