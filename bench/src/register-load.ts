import { httpRequest } from "./http-request.ts";
import { runLoad } from "./load.ts";

/**
 * Registers devices over plain sockets, one on each connection at a time, as apps that know nothing of each other. A process of its
 * own: `register-load.ts <gateway> <token> <first> <count>`, whose devices are told by their number. Prints an `Answered`.
 */

const [gateway = "", token = "", first = "0", count = "0"] = process.argv.slice(2);
const to = new URL(gateway);
const headers = { Authorization: `Bearer ${token}` };
const requestOf = (device: number): string => {
  const pushToken = `b0${device.toString(16).padStart(62, "0")}`;
  const body = {
    device: { token: pushToken, platform: "ios", topics: ["news", "offers"], metadata: { app_version: "1.2.3" } },
  };
  return httpRequest({ method: "POST", to, path: "/api/v1/devices", headers, body });
};
const requests = Array.from({ length: Number(count) }, (_, index) => requestOf(Number(first) + index));
await runLoad({ to, requests, connections: 50 });
