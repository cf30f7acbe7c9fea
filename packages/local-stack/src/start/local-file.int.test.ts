import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type LocalFile, localFile } from "./local-file.ts";

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "herald-local-file-"));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const content = (pid: number) => ({ processes: { gateway: pid } }) as unknown as LocalFile;

test("writes of the same moment follow one another, and the last one stays", async () => {
  const file = localFile(dataDir);
  await Promise.all(Array.from({ length: 20 }, (_, pid) => file.write(content(pid))));
  expect(await readdir(dataDir)).toEqual(["local.json"]);
  expect(JSON.parse(await readFile(join(dataDir, "local.json"), "utf8"))).toEqual(content(19));
});

test("nothing is written after the removal", async () => {
  const file = localFile(dataDir);
  const writing = file.write(content(1));
  const removing = file.remove();
  await Promise.all([writing, removing, file.write(content(2))]);
  expect(await readdir(dataDir)).toEqual([]);
});
