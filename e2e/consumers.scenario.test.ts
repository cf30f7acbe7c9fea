import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePortsEnvironment, type RunningHerald, startHerald } from "@herald/local-stack";
import {
  type BrokerHands,
  eventually,
  type FreshDatabase,
  freshDatabase,
  natsRefusal,
  operateBroker,
} from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { shellBlocks } from "./harness/shell-blocks.ts";
import { goProgram, pipInstall } from "./test-tools.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const page = join(root, "docs/how-to/consume-events.md");
const tools = { env: process.env, progress: () => {} };

let folder: string;
let herald: RunningHerald;
const databases: FreshDatabase[] = [];
let hands: BrokerHands;
let env: NodeJS.ProcessEnv;
let projectId: string;
let pythonPath: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-consumers-"));
  for (const service of ["registry", "dispatch", "analytics"]) {
    const prefix = databases[0]?.prefix;
    databases.push(await freshDatabase({ service, ...(prefix !== undefined && { prefix }) }));
  }
  const [{ url: HeraldMongoUrl, prefix: HeraldDatabasePrefix }] = databases as [FreshDatabase];
  const database = { HERALD_MONGO_URL: HeraldMongoUrl, HERALD_DATABASE_PREFIX: HeraldDatabasePrefix };
  env = { ...process.env, ...freePortsEnvironment, ...database, HERALD_DATA_DIR: join(folder, ".herald") };
  herald = await startHerald({ root, dataDir: join(folder, ".herald"), env, say: () => {}, logLine: () => {} });
  projectId = herald.local.project.id;
  hands = await operateBroker(herald.local.nats);
  pythonPath = await pipInstall("nats-py-2.16.0", ["nats-py==2.16.0"], tools);
}, 300_000);
afterAll(async () => {
  await hands?.close();
  await herald?.stop();
  for (const database of databases) await database.drop();
  await rm(folder, { recursive: true, force: true });
});

/** As `npm run consumer`, which the page's commands start. */
const consumer = (...args: string[]) =>
  run(process.execPath, ["--conditions=@herald/source", "tools/local-stack/src/consumer.ts", ...args], {
    cwd: root,
    env,
  });
const variables = (text: string) =>
  Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split("=", 2)),
  );

/** Publishes an event as any version of Herald might. Every call is a new message, also with the same id. */
const event = (id: string, type = "notification.opened", body: unknown = { projectId, later: { added: true } }) =>
  hands.publish(`push.evt.v1.${projectId}.${type}`, typeof body === "string" ? body : JSON.stringify(body), {
    "Nats-Msg-Id": randomUUID(),
    "ce-id": id,
    "ce-type": `io.herald.${type}.v1`,
    "ce-time": new Date().toISOString(),
  });

/** Publishes a message of several events, as Herald does with those of the same moment. */
const together = (ids: readonly string[]) =>
  hands.publish(
    `push.evt.v1.${projectId}.device.updated`,
    JSON.stringify(
      ids.map((id) => ({
        specversion: "1.0",
        id,
        source: `/projects/${projectId}`,
        type: "io.herald.device.updated.v1",
        time: new Date().toISOString(),
        data: { later: { added: true } },
      })),
    ),
    { "Nats-Msg-Id": randomUUID(), "content-type": "application/cloudevents-batch+json" },
  );

const examples = [
  { language: "TypeScript", command: process.execPath, file: "consumer.ts" },
  { language: "Python", command: "python3", file: "consumer.py" },
];

describe.each(examples)("the example in $language", ({ language, command, file }) => {
  const name = language.toLowerCase();
  let access: Record<string, string>;
  let running: ChildProcess | undefined;
  let printed: { what: string; id: string; type: string; data: unknown }[] = [];
  let said = "";
  beforeAll(async () => {
    access = variables((await consumer("add", name, "--project", projectId, "--from", "new")).stdout);
  });
  /** Stops it gracefully, so that it cancels its pending requests. */
  afterEach(async () => {
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    running.kill("SIGTERM");
    await once(running, "exit");
  });

  const start = (more: Record<string, string> = {}) => {
    printed = [];
    const own = { PATH: process.env.PATH, PYTHONPATH: pythonPath, SEEN: join(folder, `${name}.seen`) };
    const child = spawn(command, [join(root, "examples", file)], { env: { ...own, ...access, ...more } });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const lines = said.split("\n");
      said = lines.pop() ?? "";
      printed.push(...lines.map((line) => JSON.parse(line)));
    });
    child.stderr.resume();
    running = child;
    return child;
  };
  const ids = () => printed.map(({ id }) => id);

  test("shows a repeated event once, and keeps unknown fields", async () => {
    start();
    for (const id of ["a", "a", "b"]) await event(`${name}-${id}`);
    await event(`${name}-c`, "notification.snoozed", { projectId, until: "tomorrow" });
    await event(`${name}-d`, "notification.opened", "no JSON");
    await eventually(() => expect(ids()).toEqual(["a", "b", "c", "d"].map((id) => `${name}-${id}`)), {
      timeoutMs: 30_000,
    });
    expect(printed).toMatchObject([
      { what: "opened", type: "io.herald.notification.opened.v1", data: { later: { added: true } } },
      { what: "opened" },
      { what: "kept", type: "io.herald.notification.snoozed.v1", data: { until: "tomorrow" } },
      { what: "opened", data: "no JSON" },
    ]);
    running?.kill("SIGTERM");
    if (running) expect(await once(running, "exit")).toEqual([0, null]);
  });

  test("shows each event of a shared message once, also in other company", async () => {
    start();
    await event(`${name}-m`);
    await together([`${name}-m`, `${name}-n`, `${name}-o`]);
    await together([`${name}-o`, `${name}-p`]);
    await eventually(() => expect(ids()).toEqual(["m", "n", "o", "p"].map((id) => `${name}-${id}`)), {
      timeoutMs: 30_000,
    });
    expect(printed.at(-1)).toMatchObject({
      what: "kept",
      type: "io.herald.device.updated.v1",
      source: `/projects/${projectId}`,
      data: { later: { added: true } },
    });
    await eventually(async () => expect(await hands.unsettled("PUSH_EVENTS", access.NATS_DURABLE ?? "")).toBe(0));
  });

  test("continues after a kill, and takes no more than it can handle", async () => {
    await hands.setAckWait("PUSH_EVENTS", access.NATS_DURABLE ?? "", 3_000);
    const slow = start({ MAX_MESSAGES: "2", SLOWLY_MS: "200" });
    // Unique ids for this attempt, because events that an earlier attempt has seen are not shown again.
    const prefix = `${name}-${randomUUID()}-`;
    const many = Array.from({ length: 12 }, (_, index) => prefix + index);
    const shown = () => ids().filter((id) => id.startsWith(prefix));
    for (const id of many) await event(id);
    await eventually(() => expect(shown().length).toBeGreaterThan(2), { timeoutMs: 30_000 });
    const waiting = await hands.unsettled("PUSH_EVENTS", access.NATS_DURABLE ?? "");
    expect(waiting).toBeLessThanOrEqual(2);
    slow.kill("SIGKILL");
    await once(slow, "exit");
    const before = shown();
    start();
    // Messages in flight to the killed consumer are redelivered after the ack wait.
    await eventually(() => expect(new Set([...before, ...shown()])).toEqual(new Set(many)), { timeoutMs: 90_000 });
    expect([...before, ...shown()]).toHaveLength(many.length);
  });

  test("gets all events since a time again when its durable is replayed", async () => {
    const since = new Date().toISOString();
    for (const id of ["x", "y"]) await event(`${name}-${id}`);
    const both = new Set([`${name}-x`, `${name}-y`]);
    const first = start();
    await eventually(() => expect(new Set(ids())).toEqual(both), { timeoutMs: 60_000 });
    first.kill("SIGTERM");
    await once(first, "exit");
    await consumer("replay", name, "--from", since);
    start({ SEEN: "" });
    await eventually(() => expect(new Set(ids())).toEqual(both), { timeoutMs: 60_000 });
  });
});

/** The folder of the program, from PATH or built from the Go proxy; otherwise the reason why neither works. */
const natsCommand = async (): Promise<{ folder: string } | { why: string }> => {
  try {
    return { folder: dirname((await run("sh", ["-c", "command -v nats"])).stdout) };
  } catch {
    return goProgram("nats-cli-0.3.0", "github.com/nats-io/natscli/nats@v0.3.0", tools).then(
      (folder) => ({ folder }),
      (error) => ({ why: String(error) }),
    );
  }
};

test("the page's commands work with the nats command alone, and a removed consumer is refused", async ({ skip }) => {
  const nats = await natsCommand();
  if ("why" in nats) return skip(nats.why);
  const path = `${nats.folder}:${env.PATH}`;
  const text = await readFile(page, "utf8");
  const follow = async (heading: string, more = {}) => {
    const script = shellBlocks(text, heading).join("\n").replaceAll("npm run", `npm --prefix ${root} run`);
    const { stdout } = await run("sh", ["-e", "-c", script], {
      cwd: folder,
      env: { ...env, ...more, PATH: path, project: projectId },
    });
    return [...stdout.matchAll(/ce-id: (\S+)/gi)].map(([, id]) => id);
  };
  const since = new Date().toISOString();
  await follow("A user of your own");
  await consumer("replay", "warehouse", "--from", since);
  for (const id of ["1", "2", "3", "4"]) await event(`page-${id}`);
  expect(await follow("With the nats command")).toEqual(["page-1", "page-2", "page-3"]);
  await follow("Replay", { since });
  expect(await follow("With the nats command")).toEqual(["page-1", "page-2", "page-3"]);

  const access = variables(await readFile(join(folder, "warehouse.env"), "utf8"));
  const { NATS_USER: user = "", NATS_PASSWORD: password = "" } = access;
  // The page's commands pass it behind a flag.
  expect(password).toMatch(/^[0-9a-f]{48}$/);
  const refusal = () => natsRefusal({ url: herald.local.nats.url, user, password }, "PUB push.cmd.v1.a 0\r\n");
  expect(await refusal()).toMatch(/^permissions violation/i);
  await consumer("remove", "warehouse");
  await eventually(async () => expect(await refusal()).toMatch(/^authorization violation/i));
}, 600_000);
