import { join } from "node:path";
import { composeStarter } from "./servers/docker.ts";
import { mongoRemedy, resolveMongo } from "./servers/mongo.ts";
import { natsRemedy, resolveNats } from "./servers/nats.ts";
import { newPasswords } from "./servers/nats-users.ts";
import type { ProgramAttempt } from "./servers/resolve-program.ts";

/** `npm run stack`: shows where `npm start` gets its broker and database on this machine, and why. Starts nothing. */

const root = join(import.meta.dirname, "../../..");
const compose = { root, env: process.env, natsPort: 0, mongoPort: 0, natsPasswords: newPasswords(() => "") };
const options = { env: process.env, progress: () => {}, onlyTell: true };

const nats = await resolveNats({ ...options, docker: composeStarter("nats", compose) });
const mongo = await resolveMongo({ ...options, docker: composeStarter("mongo", compose) });
show("NATS", nats.attempts, natsRemedy);
show("MongoDB protocol", mongo.attempts, mongoRemedy);
if (!nats.choice || !mongo.choice) process.exitCode = 1;

function show(what: string, attempts: readonly ProgramAttempt[], remedy: string): void {
  console.log(what);
  for (const { step, chosen, why } of attempts) console.log(`  ${chosen ? "→" : " "} ${step.padEnd(11)} ${why}`);
  if (!attempts.some(({ chosen }) => chosen)) console.log(`  ${remedy}`);
}
