import { converse } from "./converse.ts";

/**
 * Registers devices over plain sockets, one on each connection at a time, as apps that know nothing of each other. A process of its
 * own: `register-load.ts <gateway> <token> <first> <count>`, whose devices are told by their number. Prints `{ seconds, statuses }`.
 */

const connections = 50;

const [gateway = "", token = "", first = "0", count = "0"] = process.argv.slice(2);
const { hostname, port, host } = new URL(gateway);
const requestOf = (device: number): string => {
  const pushToken = `b0${device.toString(16).padStart(62, "0")}`;
  const body = JSON.stringify({
    device: { token: pushToken, platform: "ios", topics: ["news", "offers"], metadata: { app_version: "1.2.3" } },
  });
  return `POST /api/v1/devices HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};
const perConnection = Math.ceil(Number(count) / connections);
const statuses: Record<string, number> = {};
const onAnswer = (_: number, status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};
const begin = performance.now();
await Promise.all(
  Array.from({ length: connections }, (_, lane) => {
    const requests = Array.from({ length: perConnection }, (__, index) =>
      requestOf(Number(first) + index * connections + lane),
    );
    return converse(
      { port: Number(port), host: hostname },
      { requests, allowed: (answered) => answered + 1, onAnswer },
    );
  }),
);
const seconds = (performance.now() - begin) / 1000;
process.stdout.write(`${JSON.stringify({ seconds, statuses })}\n`);
