import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findGo } from "./toolchains.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-go-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const install = async (name: string): Promise<string> => {
  const go = join(folder, name, "go");
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(go, "#!/bin/sh\n");
  await chmod(go, 0o755);
  return go;
};

test("Go comes from PATH, then from GOROOT", async () => {
  const env = { PATH: join(folder, "path"), GOROOT: join(folder, "root") };
  await expect(findGo(env)).rejects.toThrow(`go is neither on PATH nor in ${folder}/root/bin`);
  const inRoot = await install("root/bin");
  expect(await findGo(env)).toBe(inRoot);
  const onPath = await install("path");
  expect(await findGo(env)).toBe(onPath);
});

test("without GOROOT the folders of Go's installers are tried", async () => {
  const inHome = await install("go/bin");
  const found = await findGo({ PATH: "", HOME: folder });
  expect(["/usr/local/go/bin/go", inHome]).toContain(found);
});
