import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { dockerEngine } from "./docker.ts";
import { removeComposeData } from "./docker-compose.ts";
import { newPasswords } from "./start/nats-users.ts";
import { whoRuns } from "./start/run-lock.ts";

/** `npm run reset`: empties the data of `npm start`. What was fetched into the cache folder stays. */

const root = join(import.meta.dirname, "../../..");
const dataDir = resolve(process.env.HERALD_DATA_DIR ?? join(root, ".herald"));
const pid = await whoRuns(dataDir);
if (pid !== undefined) {
  console.error(`Herald runs on ${dataDir}, as process ${pid}: stop it first`);
  process.exit(1);
}
await rm(dataDir, { recursive: true, force: true });
if ("version" in (await dockerEngine(process.env))) {
  const unused = { natsPort: 0, mongoPort: 0, natsPasswords: newPasswords(() => "-") };
  await removeComposeData({ root, env: process.env, ...unused });
}
console.log(`${dataDir} is empty`);
