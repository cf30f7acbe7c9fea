import { spawn } from "node:child_process";
import { request as send } from "node:http";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually, expectStatus, request } from "@herald/testing";
import type { System } from "../harness/system.ts";

const main = join(import.meta.dirname, "../../services/gateway/dist/main.js");

export type TwoPorts = {
  readonly apps: string;
  readonly operators: string;
  readonly pid: number;
  readonly stop: () => Promise<void>;
};

type Variables = Readonly<Record<string, string>>;

/** Starts another gateway with one port for apps and one for operators. `env` may depend on the address for operators. */
export const startTwoPorts = async (
  system: System,
  env: Variables | ((operators: string) => Variables) = {},
): Promise<TwoPorts> => {
  const [apps, operators, metrics] = [await freePort(), await freePort(), await freePort()];
  const more = typeof env === "function" ? env(`http://127.0.0.1:${operators}`) : env;
  const gateway = spawn(process.execPath, [main], {
    stdio: "ignore",
    env: {
      ...system.environmentOf("gateway"),
      HERALD_PORT: String(apps),
      HERALD_GATEWAY_ADMIN_PORT: String(operators),
      HERALD_METRICS_PORT: String(metrics),
      ...more,
    },
  });
  const ended = new Promise((resolve) => gateway.once("exit", resolve));
  const ports = { apps: `http://127.0.0.1:${apps}`, operators: `http://127.0.0.1:${operators}` };
  const ready = async () => expectStatus(await request(ports.operators, "GET /readyz"), 200);
  await eventually(ready, { timeoutMs: 30_000 });
  return {
    ...ports,
    pid: gateway.pid ?? 0,
    stop: async () => {
      gateway.kill();
      await ended;
    },
  };
};

/** The status of a request whose path is sent unchanged: fetch would normalise it. */
export const statusOf = (
  base: string,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base);
    const sent = send({ hostname, port, method, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once("error", reject);
    sent.end();
  });
