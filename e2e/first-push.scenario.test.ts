import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePortsEnvironment, type RunningHerald } from "@herald/local-stack";
import { eventually, request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { payloadOf, simulatorControl } from "./harness/simulators.ts";

type LocalFile = RunningHerald["local"];

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");

/** Like a clone of the repository for the commands of the tutorial: it contains `.herald`. */
let folder: string;
let npm: ChildProcess;
let printed = "";
let local: LocalFile;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-first-push-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(async () => {
  printed = "";
  const env = {
    ...process.env,
    ...freePortsEnvironment,
    HERALD_DATA_DIR: join(folder, ".herald"),
  };
  // In its own process group, like a command at a terminal.
  npm = spawn("npm", ["start"], { cwd: root, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [npm.stdout, npm.stderr])
    stream?.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  local = await eventually(
    async () => {
      if (npm.exitCode !== null) throw new Error(`npm start has ended:\n${printed}`);
      return JSON.parse(await readFile(join(folder, ".herald/local.json"), "utf8")) as LocalFile;
    },
    { timeoutMs: 120_000 },
  );
  await eventually(() => expect(printed).toContain("Herald is ready"), { timeoutMs: 60_000 });
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") process.stderr.write(printed);
  if (npm.exitCode !== null || npm.signalCode !== null) return;
  process.kill(-(npm.pid as number), "SIGKILL");
  await once(npm, "exit");
});

/** Processes that still run and have this folder in their arguments or environment. */
async function left(): Promise<string[]> {
  const { stdout } = await run("ps", ["axeww", "-o", "pid=,stat=,command="], { maxBuffer: 32_000_000 });
  const lines = stdout.split("\n").filter((line) => line.includes(folder) && !/^ *\d+ Z/.test(line));
  return lines.map((line) => line.slice(0, 200));
}

async function expectAllGone(): Promise<void> {
  const { processes } = local;
  expect(Object.keys(processes)).toEqual(expect.arrayContaining(["gateway", "registry", "dispatch", "analytics"]));
  if (npm.exitCode === null && npm.signalCode === null) await once(npm, "exit");
  await eventually(async () => expect(await left()).toEqual([]), { timeoutMs: 60_000 });
  await expect(request(local.gateway, "GET /livez")).rejects.toThrow();
}

test("npm start prints little before its summary; the tutorial works twice as written; Ctrl-C leaves no process behind", async () => {
  // The demo history makes hundreds of requests. Their log lines would scroll the summary off the screen.
  const [starting = "", summary] = printed.split("Herald is ready.");
  expect(starting.trim().split("\n").length).toBeLessThan(15);
  expect(starting).toContain("starting gateway, registry, dispatch, analytics");
  expect([starting, summary].join("\n")).not.toContain("route=/api/v1/notifications/:id/open");

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
  const [program = ""] = codeBlocks(readme, "Send from TypeScript", "ts");
  const known = `const url = ${JSON.stringify(local.gateway)}, token = ${JSON.stringify(local.project.token)};\n`;
  await writeFile(join(folder, "send.mts"), `${known}${program}console.log(counts);`);
  const sent = await run(process.execPath, ["--conditions=@herald/source", "send.mts"], options);
  expect(sent.stdout).toMatch(/devices: [1-9]/);

  const running = (await left()).map((line) => Number.parseInt(line, 10));
  expect(running).toEqual(expect.arrayContaining(Object.values(local.processes)));
  process.kill(-(npm.pid as number), "SIGINT");
  await expectAllGone();
});

test("SIGTERM to npm alone, as a supervisor sends it, leaves no process behind", async () => {
  npm.kill("SIGTERM");
  await expectAllGone();
});
