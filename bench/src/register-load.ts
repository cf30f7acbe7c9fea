import { httpRequest } from "./http-request.ts";
import { runLoad } from "./load.ts";

export type RegisterLoad = {
  readonly gateway: string;
  readonly project: { readonly id: string; readonly token: string };
  /** The caller: a backend with the project's token (`POST /devices`), or apps without a credential (`PUT /identification`). */
  readonly by: "backend" | "app";
  /** The number of the first device; `count` devices have the numbers from here on. */
  readonly first: number;
  readonly count: number;
};

/**
 * Registers devices over plain sockets, one at a time on each connection, like independent apps. A process of its own:
 * `register-load.ts <RegisterLoad as JSON>`. Prints an `Answered`.
 */

const connections = 64;
const { gateway, project, by, first, count }: RegisterLoad = JSON.parse(process.argv[2] ?? "");
const to = new URL(gateway);
const metadata = { app_version: "1.2.3" };

const requestOf = (device: number): string => {
  const token = `b0${device.toString(16).padStart(62, "0")}`;
  if (by === "app") {
    const body = { project_id: project.id, identifier: token, platform: "ios", metadata };
    return httpRequest({ method: "PUT", to, path: "/api/v1/identification", body });
  }
  const headers = { Authorization: `Bearer ${project.token}` };
  const body = { device: { token, platform: "ios", topics: ["news", "offers"], metadata } };
  return httpRequest({ method: "POST", to, path: "/api/v1/devices", headers, body });
};
const requests = Array.from({ length: count }, (_, index) => requestOf(first + index));
await runLoad({ to, requests, connections });
