import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { consumersFile } from "@herald/provision";
import type { LocalFile } from "./start/data-folder.ts";

/** `npm run consumer`: uses the broker at HERALD_NATS_URL, or without it the broker of a running `npm start`. */

const root = join(import.meta.dirname, "../../..");
const dataDir = resolve(process.env.HERALD_DATA_DIR ?? join(root, ".herald"));

async function local(): Promise<{ env: NodeJS.ProcessEnv; args: string[] }> {
  const text = await readFile(join(dataDir, "local.json"), "utf8").catch(() => undefined);
  if (text === undefined) {
    console.error("Herald does not run here: npm start, or set HERALD_NATS_URL, HERALD_NATS_USER and _PASSWORD");
    process.exit(1);
  }
  const { nats, processes } = JSON.parse(text) as LocalFile;
  const { url, user, password } = nats;
  const env = {
    HERALD_NATS_URL: url,
    ...(user && { HERALD_NATS_USER: user }),
    ...(password && { HERALD_NATS_PASSWORD: password }),
  };
  // A broker that this machine's `npm start` did not start has its configuration elsewhere.
  const own = ["--accounts", consumersFile(dataDir), "--reload", `kill -HUP ${processes.nats}`];
  return { env, args: processes.nats === undefined ? [] : own };
}

const { env, args } = process.env.HERALD_NATS_URL ? { env: {}, args: [] } : await local();
const program = join(root, "packages/bus/src/consumers/main.ts");
const running = spawn(
  process.execPath,
  ["--conditions=@herald/source", program, ...process.argv.slice(2), ...(process.argv.length > 2 ? args : [])],
  { env: { ...process.env, ...env }, stdio: "inherit" },
);
const [code] = await once(running, "exit");
process.exit(code ?? 1);
