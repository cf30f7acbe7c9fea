import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { findLocalSystem } from "./local-system.ts";

const findIn = async (content: unknown, uid?: number) => {
  const folder = await mkdtemp(join(tmpdir(), "herald-local-system-"));
  const cwd = join(folder, "a", "b");
  await mkdir(join(folder, ".herald"));
  await mkdir(cwd, { recursive: true });
  await writeFile(join(folder, ".herald/local.json"), JSON.stringify(content));
  vi.spyOn(process, "cwd").mockReturnValue(cwd);
  if (uid !== undefined) vi.spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(uid);
  onTestFinished(async () => {
    vi.restoreAllMocks();
    await rm(folder, { recursive: true });
  });
  return findLocalSystem({});
};

const system = { gateway: "http://127.0.0.1:8080", adminToken: "admin", project: { id: "prj_1", token: "hpt_1" } };

test("a system of this user is found from folders below", async () => {
  expect(await findIn(system)).toMatchObject({ url: system.gateway, admin_token: "admin", project: "prj_1" });
});

test("a file of another user is not used: tokens of the environment would go to its address", async () => {
  const other = (process.getuid?.() ?? 0) + 1;
  expect(await findIn(system, other)).toBeUndefined();
});

test.each(["http://example.com", "http://127.0.0.1.example.com", "http://127.0.0.1@example.com", 1, null, {}])(
  "nor an address elsewhere: %s",
  async (gateway) => {
    expect(await findIn({ ...system, gateway })).toBeUndefined();
  },
);
