import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { LocalFile } from "../src/start/data-folder.ts";
import { demoDevices } from "../src/start/demo-history.ts";
import { freePortsEnvironment } from "../src/start/ports.ts";

const run = promisify(execFile);
const source = (file: string) => ["--conditions=@herald/source", join(import.meta.dirname, "../src", file)];
/** A start takes seconds, because the global setup has fetched the programs, but over a minute on a busy machine. */
const readyWithinMs = 90_000;

let dataDir: string;
let env: NodeJS.ProcessEnv;
let herald: ChildProcess | undefined;
let printed = "";

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "herald-start-"));
  env = { ...process.env, ...freePortsEnvironment, HERALD_DATA_DIR: dataDir };
});
afterEach(async () => {
  if (herald?.exitCode === null && herald.signalCode === null) {
    herald.kill("SIGKILL");
    await once(herald, "exit");
  }
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const local = async () => JSON.parse(await readFile(join(dataDir, "local.json"), "utf8")) as LocalFile;

async function start(): Promise<LocalFile> {
  printed = "";
  const child = spawn(process.execPath, source("start.ts"), { env, stdio: ["ignore", "pipe", "pipe"] });
  herald = child;
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (printed += text));
  return vi.waitFor(
    async () => {
      if (child.exitCode === null) return local();
      throw new Error(`it ended with ${child.exitCode}:\n${printed}`);
    },
    { timeout: readyWithinMs, interval: 200 },
  );
}

/** The printed commands: each is the line after its description. */
const printedCommands = () => [...printed.matchAll(/^# .+\n(.+)$/gm)].map(([, command]) => command ?? "");
const inShell = async (command = "") => (await run("sh", ["-c", command])).stdout;

/** Lists running processes with one of these ids or with the data folder in their arguments. */
async function left(pids: readonly number[]): Promise<string[]> {
  const { stdout } = await run("ps", ["-eo", "pid=,stat=,args="]);
  const running = stdout.split("\n").filter((line) => !/^ *\d+ Z/.test(line)); // without zombies, which have ended
  return running.filter((line) => pids.includes(Number.parseInt(line, 10)) || line.includes(dataDir));
}
const nothingIsLeft = (pids: readonly number[]) =>
  vi.waitFor(async () => expect(await left(pids)).toEqual([]), { timeout: 60_000, interval: 200 });

/** What a new user does first: asks whether all is well. Nothing has been printed that this may contradict. */
async function expectAllIsWell({ gateway, adminToken, project }: LocalFile): Promise<void> {
  const cli = join(import.meta.dirname, "../../cli/src/main.ts");
  const credentials = [
    "--url",
    gateway,
    "--admin-token",
    adminToken,
    "--token",
    project.token,
    "--project",
    project.id,
  ];
  const { stdout } = await run(
    process.execPath,
    ["--conditions=@herald/source", cli, "doctor", "--json", ...credentials],
    {
      env: { ...env, HOME: dataDir },
    },
  ).catch((error: { stdout: string }) => error);
  const findings = JSON.parse(stdout) as { state: string; found: string }[];
  // A service that a test killed is rightly listed for ten minutes.
  const problems = findings.filter(({ state, found }) => state === "problem" && !found.includes("has not reported"));
  expect(problems).toEqual([]);
}

/** The services show the real time: what is made now is dated now. */
async function expectRealTime({ gateway, project }: LocalFile): Promise<void> {
  const response = await fetch(`${gateway}/api/v1/topics`, {
    method: "POST",
    headers: { authorization: `Bearer ${project.token}`, "content-type": "application/json" },
    body: JSON.stringify({ topic: { name: `at-${Date.now()}` } }),
  });
  const { data } = (await response.json()) as { data: { created_at: string } };
  expect(Math.abs(Date.now() - Date.parse(data.created_at))).toBeLessThan(10_000);
}

test("the printed commands register, send, show and open; a killed service returns; Ctrl-C leaves nothing", {
  timeout: 480_000,
}, async () => {
  const first = await start();
  await expectRealTime(first);
  await expectAllIsWell(first);
  // The file appears when everything is ready, so the summary follows at once.
  expect(printed).toContain("Herald is ready.");
  expect(printedCommands()).toHaveLength(4);
  const [register, send, see, open] = printedCommands();

  const { data: device } = JSON.parse(await inShell(register)) as { data: { id: string; status: string } };
  expect(device).toMatchObject({ id: expect.stringMatching(/^dev_/), status: "active" });

  const sendAndOpen = async () => {
    const { data: notification } = JSON.parse(await inShell(send)) as { data: { id: string } };
    await vi.waitFor(async () => expect(await inShell(see)).toContain(`"notification_id":"${notification.id}"`), {
      timeout: 60_000,
    });
    expect(await inShell(open)).toBe("204\n");
    await vi.waitFor(
      async () => {
        const response = await fetch(`${first.gateway}/api/v1/notifications/${notification.id}`, {
          headers: { authorization: `Bearer ${first.project.token}` },
        });
        const { data } = (await response.json()) as { data: unknown };
        expect(data).toMatchObject({ status: "completed", counts: { devices: 1, accepted: 1, opened: 1 } });
      },
      { timeout: 60_000, interval: 200 },
    );
  };
  await sendAndOpen();

  const { dispatch = 0 } = first.processes;
  process.kill(dispatch, "SIGKILL");
  await vi.waitFor(async () => expect((await local()).processes.dispatch).not.toBe(dispatch), { timeout: 60_000 });
  await sendAndOpen();

  const pids = Object.values((await local()).processes);
  expect(pids.length).toBeGreaterThanOrEqual(5); // the services and the simulators; the servers may be elsewhere
  herald?.kill("SIGINT");
  expect(await once(herald as ChildProcess, "exit")).toEqual([0, null]);
  await nothingIsLeft(pids);
  expect(await readdir(dataDir)).not.toContain("local.json");
});

test("a start whose output nobody reads any more stops, as `npm start | head` does", async () => {
  const { gateway, processes } = await start();
  const ended = once(herald as ChildProcess, "exit");
  herald?.stdout?.destroy();
  // The next line that it prints finds the pipe closed.
  await fetch(`${gateway}/api/v1/devices`);
  expect(await ended).toEqual([0, null]);
  await nothingIsLeft(Object.values(processes));
});

test("the next start has the same data, one start holds the folder, and a kill of it leaves nothing", async () => {
  const second = await start();
  await expectAllIsWell(second);
  const { project, gateway, processes } = second;
  const devices = await fetch(`${gateway}/api/v1/devices`, { headers: { authorization: `Bearer ${project.token}` } });
  expect(await devices.json()).toMatchObject({ pagination: { count: 1 + demoDevices } });
  const stats = await fetch(`${gateway}/api/v1/stats`, { headers: { authorization: `Bearer ${project.token}` } });
  const { data } = (await stats.json()) as { data: { series: { sent: number; opened: number }[] } };
  for (const figure of ["sent", "opened"] as const)
    expect(data.series.reduce((sum, hour) => sum + hour[figure], 0)).toBeGreaterThan(100);

  const beside = await run(process.execPath, source("start.ts"), { env }).catch((error: unknown) => error);
  expect(beside).toMatchObject({ code: 1, stderr: expect.stringContaining(`Herald runs on ${dataDir} already`) });
  const reset = await run(process.execPath, source("reset.ts"), { env }).catch((error: unknown) => error);
  expect(reset).toMatchObject({ code: 1, stderr: expect.stringContaining("stop it first") });

  herald?.kill("SIGKILL");
  await nothingIsLeft(Object.values(processes));
  expect((await run(process.execPath, source("reset.ts"), { env })).stdout).toBe(`${dataDir} is empty\n`);
});
