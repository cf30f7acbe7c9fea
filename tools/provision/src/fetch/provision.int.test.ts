import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "@herald/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { provision } from "./provision.ts";

let cache: string;
let lines: string[];
const where = () => ({ cache, name: "thing-1", progress: (line: string) => void lines.push(line) });

beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), "herald-provision-"));
  lines = [];
});
afterEach(() => rm(cache, { recursive: true, force: true }));

async function deadPid(): Promise<number> {
  const child = spawn("true");
  await once(child, "exit");
  return child.pid ?? 0;
}

test("two at once build it once", async () => {
  let builds = 0;
  const build = async (folder: string) => {
    builds += 1;
    // It ends only after the other one has found it.
    await eventually(() => expect(lines).toHaveLength(1));
    await writeFile(join(folder, "file"), "whole");
  };
  const folders = await Promise.all([provision(where(), build), provision(where(), build)]);
  expect(folders).toEqual([join(cache, "thing-1"), join(cache, "thing-1")]);
  expect(builds).toBe(1);
  expect(await readFile(join(cache, "thing-1/file"), "utf8")).toBe("whole");
  expect(await readdir(cache)).toEqual(["thing-1"]);
  expect(lines).toEqual(["thing-1: another process is fetching it, waiting"]);
});

test("a build that fails leaves nothing, and the next one may try", async () => {
  await expect(provision(where(), () => Promise.reject(new Error("no network")))).rejects.toThrow("no network");
  expect(await readdir(cache)).toEqual([]);
  await provision(where(), async () => {});
  expect(await readdir(cache)).toEqual(["thing-1"]);
});

test("what a killed process left is taken away, what a living one builds is not", async () => {
  const pid = await deadPid();
  await writeFile(join(cache, "thing-1.lock"), String(pid));
  await mkdir(join(cache, `thing-1.building-${pid}-abcd`));
  await mkdir(join(cache, `thing-1.building-${process.pid}-abcd`));
  await provision(where(), async () => {});
  expect((await readdir(cache)).sort()).toEqual(["thing-1", `thing-1.building-${process.pid}-abcd`]);
});
