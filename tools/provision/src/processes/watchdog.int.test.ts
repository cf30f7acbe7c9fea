import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

/**
 * Starts two servers and prints their pids. Each writes its name into a file when it is asked to stop. The first must still run while
 * the second stops.
 */
const parentScript = `
import { startProcess, waitUntilReady } from ${JSON.stringify(new URL("./start-process.ts", import.meta.url).href)};
import { removeAtExit } from ${JSON.stringify(new URL("./watchdog.ts", import.meta.url).href)};
const folder = process.argv[2];
const server = async (name) => {
  const script = "trap 'echo " + name + " >> " + folder + "/order; exit 0' INT; echo ready; while :; do sleep 0.05; done";
  const output = { file: folder + "/" + name + ".log" };
  const running = await startProcess({ name, command: "sh", args: ["-c", script], stopSignal: "SIGINT", stopTimeoutMs: 5000, output });
  await waitUntilReady(running, async () => (await running.lastWords()) || undefined, 5000);
  return running;
};
removeAtExit(folder + "/data");
const first = await server("first");
const second = await server("second");
if (process.argv[3] === "stop") { await second.stop(); await first.stop(); process.exit(0); }
console.log(first.pid + " " + second.pid);
setInterval(() => {}, 1000);
`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-watchdog-"));
  await mkdir(join(folder, "data"));
  await writeFile(join(folder, "parent.ts"), parentScript);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const startParent = (...args: string[]) =>
  spawn(process.execPath, ["--conditions=@herald/source", join(folder, "parent.ts"), folder, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
const order = () => readFile(join(folder, "order"), "utf8").catch(() => "");
const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

test.each(["SIGKILL", "SIGTERM"] as const)(
  "when its parent ends by %s, servers end newest first and folders go",
  async (signal) => {
    const parent = startParent();
    const [line] = (await once(createInterface({ input: parent.stdout }), "line")) as [string];
    const [first] = line.split(" ").map(Number);
    parent.kill(signal);
    await vi.waitFor(async () => expect(await exists(join(folder, "data"))).toBe(false), { timeout: 20_000 });
    expect(await order()).toBe("second\nfirst\n");
    // Its new parent may be slow to reap it.
    await vi.waitFor(() => expect(() => process.kill(-(first ?? 0), "SIGTERM")).toThrow("ESRCH"), { timeout: 20_000 });
  },
);

test("what was stopped is not stopped again", async () => {
  const parent = startParent("stop");
  await once(parent, "exit");
  await vi.waitFor(async () => expect(await exists(join(folder, "data"))).toBe(false), { timeout: 20_000 });
  expect(await order()).toBe("second\nfirst\n");
});
