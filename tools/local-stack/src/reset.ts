import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { dockerEngine, newPasswords, removeComposeData } from "@herald/provision";
import { runningPid } from "./start/data-folder.ts";

/** `npm run reset`: deletes the data of `npm start`. Downloaded programs stay in the cache folder. */

const root = join(import.meta.dirname, "../../..");
const dataDir = resolve(process.env.HERALD_DATA_DIR ?? join(root, ".herald"));
const pid = await runningPid(dataDir);
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
