import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePortsEnvironment, type RunningHerald } from "@herald/local-stack";
import { eventually, expectStatus, request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { demoDevices } from "../tools/local-stack/src/start/demo-history.ts";
import { quickCommandLine } from "./harness/quick-command-line.ts";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { payloadOf, simulatorControl } from "./harness/simulators.ts";

// On a busy machine, the whole system takes a minute to start.
vi.setConfig({ testTimeout: 300_000 });

type LocalFile = RunningHerald["local"];

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const source = (file: string) => ["--conditions=@herald/source", join(root, "tools/local-stack/src", file)];

/** Like a clone of the repository for the commands of the tutorial: it contains `.herald`. Each start has the data of those before it. */
let folder: string;
let dataDir: string;
let env: NodeJS.ProcessEnv;
let started: ChildProcess;
let printed = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-npm-start-"));
  dataDir = join(folder, ".herald");
  env = { ...process.env, ...freePortsEnvironment, HERALD_DATA_DIR: dataDir };
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") process.stderr.write(printed);
  if (started.exitCode !== null || started.signalCode !== null) return;
  process.kill(-(started.pid as number), "SIGKILL");
  await once(started, "exit");
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

const readLocal = async () => JSON.parse(await readFile(join(dataDir, "local.json"), "utf8")) as LocalFile;

/** Starts the whole system in its own process group, like a command at a terminal. Resolves when it is ready. */
async function start(command: string, words: readonly string[]): Promise<LocalFile> {
  printed = "";
  const child = spawn(command, words, { cwd: root, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  started = child;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  const local = await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`the start has ended:\n${printed}`);
      return readLocal();
    },
    { timeoutMs: 120_000 },
  );
  // The file appears when everything is ready, so the summary follows at once.
  await eventually(() => expect(printed).toContain("Herald is ready"), { timeoutMs: 60_000 });
  return local;
}
const npmStart = () => start("npm", ["start"]);
/** Without npm between this process and the start. */
const startAlone = () => start(process.execPath, source("main.ts"));

const ended = async () => {
  if (started.exitCode === null && started.signalCode === null) await once(started, "exit");
  return [started.exitCode, started.signalCode];
};

/** Processes that still run and have this folder in their arguments or environment. */
async function left(): Promise<string[]> {
  const { stdout } = await run("ps", ["axeww", "-o", "pid=,stat=,command="], { maxBuffer: 32_000_000 });
  const lines = stdout.split("\n").filter((line) => line.includes(folder) && !/^ *\d+ Z/.test(line));
  return lines.map((line) => line.slice(0, 200));
}

async function expectAllGone({ processes, gateway }: LocalFile): Promise<void> {
  expect(Object.keys(processes)).toEqual(expect.arrayContaining(["gateway", "registry", "dispatch", "analytics"]));
  await eventually(async () => expect(await left()).toEqual([]), { timeoutMs: 60_000 });
  await expect(request(gateway, "GET /livez")).rejects.toThrow();
}

/** What a new user does first: asks whether all is well. Nothing has been printed that this may contradict. */
async function expectAllIsWell({ gateway, adminToken, project }: LocalFile): Promise<void> {
  const { herald } = quickCommandLine({
    HOME: folder,
    HERALD_URL: gateway,
    HERALD_ADMIN_TOKEN: adminToken,
    HERALD_TOKEN: project.token,
    HERALD_PROJECT: project.id,
  });
  const findings = JSON.parse((await herald("doctor", "--json")).stdout) as { state: string; found: string }[];
  // A service that a test killed is rightly listed for ten minutes.
  const problems = findings.filter(({ state, found }) => state === "problem" && !found.includes("has not reported"));
  expect(problems).toEqual([]);
}

const api = async ({ gateway, project }: LocalFile, route: string, body?: unknown) =>
  expectStatus(await request(`${gateway}/api/v1`, route, { token: project.token, ...(body ? { body } : {}) }), 200, 201)
    .body;

/** The services show the real time: what is made now is dated now. */
async function expectRealTime(local: LocalFile): Promise<void> {
  const asked = Date.now();
  const { data } = await api(local, "POST /topics", { topic: { name: `at-${asked}` } });
  const made = Date.parse(data.created_at);
  expect(made).toBeGreaterThanOrEqual(asked);
  expect(made).toBeLessThanOrEqual(Date.now());
}

/** What the project has: it survives a restart. */
const dataOf = async (local: LocalFile) => {
  const { pagination } = await api(local, "GET /devices");
  const { data } = await api(local, "GET /stats");
  const sum = (figure: "sent" | "opened") =>
    data.series.reduce((all: number, hour: Record<string, number>) => all + (hour[figure] ?? 0), 0) as number;
  return { devices: pagination.count as number, sent: sum("sent"), opened: sum("opened") };
};
/** The number of devices at the end of the first start. */
let kept: number;

/** The printed commands: each is the line after its description. */
const printedCommands = () => [...printed.matchAll(/^# .+\n(.+)$/gm)].map(([, command]) => command ?? "");
const inShell = async (command = "") => (await run("sh", ["-c", command])).stdout;

test("npm start prints little before its summary; the tutorial works twice as written, and the printed commands after a service was killed; Ctrl-C leaves no process behind", {
  timeout: 480_000,
}, async () => {
  const local = await npmStart();
  // The demo history makes hundreds of requests. Their log lines would scroll the summary off the screen.
  const [starting = "", summary] = printed.split("Herald is ready.");
  expect(starting.trim().split("\n").length).toBeLessThan(15);
  expect(starting).toContain("starting gateway, registry, dispatch, analytics");
  expect([starting, summary].join("\n")).not.toContain("route=/api/v1/notifications/:id/open");
  await expectRealTime(local);
  await expectAllIsWell(local);
  expect(printedCommands()).toHaveLength(4);
  const [register, send, see, open] = printedCommands();

  const tutorial = await readFile(join(root, "docs/tutorial/first-push.md"), "utf8");
  // The start is this test's own.
  expect(tutorial).toContain("```\nnpm ci && npm start\n```");
  const script = [...tutorial.matchAll(/^## (.+)$/gm)].flatMap(([, heading = ""]) => shellBlocks(tutorial, heading));
  expect(script.length).toBeGreaterThanOrEqual(7);
  // In a clone, `npx herald` finds the command line; its profile stays in the folder.
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  const options = {
    cwd: folder,
    maxBuffer: 32_000_000,
    timeout: 90_000,
    env: { ...process.env, XDG_CONFIG_HOME: join(folder, "config"), NO_COLOR: "1" },
  };
  const follow = async () => (await run("sh", ["-e", "-c", script.join("\n")], options)).stdout;

  const first = await follow();
  expect(first).toContain('"credential":"hdc_');
  const [id, everywhere] = [...first.matchAll(/"id":"(ntf_\w+)","status":"accepted"/g)].map(([, one]) => one);
  const lines = first.split("\n");
  const received = JSON.parse(lines.find((line) => line.startsWith('{"aps"')) ?? "");
  expect(received).toMatchObject({
    aps: { alert: { title: "Hello", body: "It works" } },
    link_to: "/news/1",
    notification_id: id,
  });
  expect(lines).toContain("204");
  expect(lines.find((line) => line.includes('"opened":1'))).toContain(id);
  const control = simulatorControl(local.simulators.control);
  /** The providers that have the notification for all three platforms, as soon as each has one. */
  await eventually(
    async () => {
      const pushes = (await control.pushes()).filter((push) => payloadOf(push).notification_id === everywhere);
      expect(pushes.map(({ provider }) => provider)).toEqual(expect.arrayContaining(["apns", "fcm", "webpush"]));
      expect(pushes).toHaveLength(3);
    },
    { timeoutMs: 30_000 },
  );
  expect(first).toMatch(
    /\+ token backend: its secret into backend\.token\nMade 3 changes\. The project is prj_\w+\.\n/,
  );
  expect(first.slice(first.indexOf("Made 3 changes"))).toMatch(/accepted +1\n/);
  const second = await follow();
  expect(second).toContain("204");
  // The key is made again.
  expect(second).toContain("Made 1 change.");

  const readme = await readFile(join(root, "README.md"), "utf8");
  const plain = (line: string) => line.replaceAll(/127\.0\.0\.1:\d+/g, "host").replace(/#code=\S+/, "#code=…");
  const shown = /^Herald is ready\.\n\n(.*?)\n```$/ms.exec(readme)?.[1]?.split("\n") ?? [];
  expect(shown).toHaveLength(4);
  expect(printed.split("\n").map(plain)).toEqual(expect.arrayContaining(shown.map(plain)));
  const checked = (await run("sh", ["-e", "-c", shellBlocks(readme, "Start").join("\n")], options)).stdout;
  const ofCli = shellBlocks(await readFile(join(root, "packages/cli/README.md"), "utf8"), "First push");
  expect(ofCli).toHaveLength(1);
  await run("sh", ["-e", "-c", ofCli.join("\n")], options);
  expect(checked).toMatch(/^All is well\.$[\s\S]*^status +completed$/m);
  const [program = ""] = codeBlocks(readme, "Send from TypeScript", "ts");
  const known = `const url = ${JSON.stringify(local.gateway)}, token = ${JSON.stringify(local.project.token)};\n`;
  await writeFile(join(folder, "send.mts"), `${known}${program}console.log(counts);`);
  const sent = await run(process.execPath, ["--conditions=@herald/source", "send.mts"], options);
  expect(sent.stdout).toMatch(/devices: [1-9]/);

  const { dispatch = 0 } = local.processes;
  process.kill(dispatch, "SIGKILL");
  await eventually(async () => expect((await readLocal()).processes.dispatch).not.toBe(dispatch), {
    timeoutMs: 60_000,
  });
  const { data: device } = JSON.parse(await inShell(register)) as { data: { id: string; status: string } };
  expect(device).toMatchObject({ id: expect.stringMatching(/^dev_/), status: "active" });
  const { data: notification } = JSON.parse(await inShell(send)) as { data: { id: string } };
  await eventually(async () => expect(await inShell(see)).toContain(`"notification_id":"${notification.id}"`), {
    timeoutMs: 60_000,
  });
  for (const command of [register, see]) expect(await inShell(command)).toMatch(/\}\n$/);
  expect(await inShell(open)).toBe("204\n");
  await eventually(
    async () => {
      const { data } = await api(local, `GET /notifications/${notification.id}`);
      expect(data).toMatchObject({ status: "completed", counts: { opened: 1 } });
    },
    { timeoutMs: 60_000 },
  );
  kept = (await dataOf(local)).devices;
  expect(kept).toBeGreaterThan(demoDevices);

  const running = (await left()).map((line) => Number.parseInt(line, 10));
  expect(running).toEqual(expect.arrayContaining(Object.values((await readLocal()).processes)));
  process.kill(-(started.pid as number), "SIGINT");
  await ended();
  await expectAllGone(local);
  expect(await readdir(dataDir)).not.toContain("local.json");
});

test("the next start has the same data, and SIGTERM to npm alone, as a supervisor sends it, leaves no process behind", async () => {
  const local = await npmStart();
  await expectAllIsWell(local);
  const { devices, sent, opened } = await dataOf(local);
  expect(devices).toBe(kept);
  // The series moves on with each hour, so it may have lost its first one.
  expect(sent).toBeGreaterThan(100);
  expect(opened).toBeGreaterThan(100);
  started.kill("SIGTERM");
  await ended();
  await expectAllGone(local);
});

test("a start whose output nobody reads any more stops, as `npm start | head` does", async () => {
  const local = await startAlone();
  started.stdout?.destroy();
  // The next line that it prints finds the pipe closed: that of this request, or a warning before it.
  await api(local, "GET /devices").catch(() => {});
  expect(await ended()).toEqual([0, null]);
  await expectAllGone(local);
});

test("one start holds the folder, and a kill of it leaves nothing", async () => {
  const local = await startAlone();
  const beside = await run(process.execPath, source("main.ts"), { env }).catch((error: unknown) => error);
  expect(beside).toMatchObject({ code: 1, stderr: expect.stringContaining(`Herald runs on ${dataDir} already`) });
  const reset = await run(process.execPath, source("reset.ts"), { env }).catch((error: unknown) => error);
  expect(reset).toMatchObject({ code: 1, stderr: expect.stringContaining("stop it first") });

  started.kill("SIGKILL");
  await ended();
  await expectAllGone(local);
  expect((await run(process.execPath, source("reset.ts"), { env })).stdout).toBe(`${dataDir} is empty\n`);
});
