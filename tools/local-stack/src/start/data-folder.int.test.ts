import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type LocalFile, localFile, runningPid, takeRunLock } from "./data-folder.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "herald-data-folder-"));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

test("one start holds a data folder until its stop", async () => {
  expect(await runningPid(dataDir)).toBeUndefined();
  const listeners = process.listenerCount("exit");
  const { wasKilled, release } = await takeRunLock(dataDir);
  expect(wasKilled).toBe(false);
  expect(await runningPid(dataDir)).toBe(process.pid);
  await expect(takeRunLock(dataDir)).rejects.toThrow(`Herald runs on ${dataDir} already, as process ${process.pid}`);
  release();
  expect(await runningPid(dataDir)).toBeUndefined();
  expect(process.listenerCount("exit")).toBe(listeners);
});

test("the lock of a killed start is taken over", async () => {
  const child = spawn("true");
  await once(child, "exit");
  await writeFile(join(dataDir, "start.pid"), String(child.pid));
  expect(await runningPid(dataDir)).toBeUndefined();
  expect(await takeRunLock(dataDir)).toMatchObject({ wasKilled: true });
  expect(await readFile(join(dataDir, "start.pid"), "utf8")).toBe(String(process.pid));
});

const content = (pid: number) => ({ processes: { gateway: pid } }) as unknown as LocalFile;

test("the last content stays, and nothing is written after the removal", async () => {
  const file = localFile(dataDir);
  for (const pid of [1, 2]) file.write(content(pid));
  expect(await readdir(dataDir)).toEqual(["local.json"]);
  expect(JSON.parse(await readFile(join(dataDir, "local.json"), "utf8"))).toEqual(content(2));
  file.remove();
  file.write(content(3));
  expect(await readdir(dataDir)).toEqual([]);
});
