import { join, resolve } from "node:path";
import { HeraldAdmin } from "@herald/client";
import { isRoutineBefore, plainLine } from "./start/plain-line.ts";
import { printedCommands } from "./start/printed-commands.ts";
import { type RunningHerald, startHerald } from "./start/start-herald.ts";

/** `npm start`: runs the whole system on this machine until Ctrl-C. */

const root = join(import.meta.dirname, "../../..");
const dataDir = resolve(process.env.HERALD_DATA_DIR ?? join(root, ".herald"));
const nameWidth = 10;
/** Before the summary only problems are shown, unless a log level is set: hundreds of lines about the demo project would hide them. */
let readyAt = process.env.HERALD_LOG_LEVEL ? 0 : Number.POSITIVE_INFINITY;
const logLine = (name: string, line: string) => {
  if (!isRoutineBefore(line, readyAt)) console.log(`${name.padEnd(nameWidth)} | ${plainLine(line)}`);
};
const say = (line: string) => logLine("herald", line);

let running: RunningHerald | undefined;
let stopping = false;

async function end(why: string, exitCode: number): Promise<void> {
  // Before the start is complete, or at a second signal, exit at once: the watchdog stops all parts.
  if (stopping || !running) process.exit(exitCode || 130);
  stopping = true;
  say(`${why}: stopping services, then simulators, then broker and database`);
  await running.stop();
  say("stopped");
  process.exit(exitCode);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void end(signal, 0));
// The terminal, npm or the reader of a pipe (`npm start | head`) may end first. This process must still stop its parts.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
process.stdout.once("error", () => void end("the output was closed", 0));
if (process.env.npm_lifecycle_event) {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && void end("npm has ended", 0), 1_000).unref();
}

try {
  const { env } = process;
  running = await startHerald({
    root,
    dataDir,
    env,
    console: true,
    history: env.HERALD_DEMO_HISTORY !== "off",
    say,
    logLine,
  });
  const link = await signInLink(running.local);
  readyAt = Math.min(readyAt, Date.now());
  console.log(summary(running, link));
  void running.failed.then((why) => end(why, 1));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

/** A link that signs in to the console once. */
async function signInLink({ gateway, adminToken }: RunningHerald["local"]): Promise<string> {
  const { sessions } = new HeraldAdmin({ url: gateway, token: adminToken });
  return sessions.createCode().then(
    ({ code }) => `${gateway}/console/#code=${code}   (signs in once, within 10 minutes; later with the admin token)`,
    () => `${gateway}/console/   (sign in with the admin token)`,
  );
}

function summary({ local, sources }: RunningHerald, link: string): string {
  const lines = [
    "",
    "Herald is ready.",
    "",
    `  console      ${link}`,
    `  gateway      ${local.gateway}   (interface: ${local.gateway}/docs)`,
    `  pushes       ${local.simulators.control}   (a page that shows them as they arrive)`,
    `  example      ${local.example}   (a site with the browser kit: subscribe, log in, send)`,
    `  project      ${local.project.id}, token ${local.project.token}`,
    `  admin token  ${local.adminToken}`,
    `  NATS         ${local.nats.url}   (${sources.nats.why})`,
    `  database     ${local.mongo.url}   (${sources.mongo.why})`,
    `  data         ${dataDir}   (npm run reset empties it; local.json has all of this for scripts)`,
    "",
    "Your first push, in another terminal:",
  ];
  for (const { does, command } of printedCommands({ ...local, control: local.simulators.control })) {
    lines.push("", `# ${does}`, command);
  }
  return [...lines, "", "Ctrl-C stops everything.", ""].join("\n");
}
