import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@herald/kit";
import { eventually } from "@herald/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGroupsFile } from "./groups-file.ts";
import { parseGroups } from "./parse-groups.ts";

const shop = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const app = "prj_06bq4ghm31tz5d2ns8y7k9w0ad";

describe("a groups file", () => {
  test("has a group a line, a role and projects", () => {
    const text = `shop-team: { role: member, projects: [{ id: ${shop}, role: operator }] }\n"all staff": { role: viewer }\n`;
    expect(parseGroups(text)).toEqual({
      "shop-team": { role: "member", projects: [{ id: shop, role: "operator" }] },
      "all staff": { role: "viewer", projects: [] },
    });
    expect(parseGroups("# empty\n")).toEqual({});
  });

  test.each([
    ["a: { role: boss }", /^line 1, column 12: a\.role: /],
    ["a: { role: viewer }\nb: { roles: viewer }", /^line 2, column 4: b: Unrecognized key/],
    ["a: { role: viewer", /^line 1, column \d+: /],
    ["a: { role: viewer }\na: { role: admin }", /^line 2, column 1: .*unique/],
    ["a: &x { role: viewer }\nb: *x", /^line 2, column 4: aliases are not accepted/],
    ["- a", /^line 1, column 1: /],
    [`a: { projects: [{ id: shop, role: viewer }] }`, /^line 1, column 23: a\.projects\.0\.id: /],
    [`a: ${"x".repeat(1_048_576)}`, /larger than 1 MiB/],
  ])("is refused with line and column: %#", (text, problem) => {
    expect(() => parseGroups(text)).toThrow(problem);
  });
});

const open = async (text: string) => {
  const folder = await mkdtemp(join(tmpdir(), "herald-groups-"));
  const path = join(folder, "groups.yaml");
  await writeFile(path, text);
  const lines: string[] = [];
  const log = createLogger({ service: "test", level: "info", destination: { write: (line) => void lines.push(line) } });
  const file = createGroupsFile(path, log);
  onTestFinished(async () => {
    file.stop();
    await rm(folder, { recursive: true, force: true });
  });
  /** At once: an empty file, as it is between its opening and its writing, is valid. */
  const replace = async (next: string) => {
    await writeFile(`${path}.next`, next);
    await rename(`${path}.next`, path);
  };
  return { replace, file, lines };
};

test("rights of several groups and the own ones are joined, the higher role in each project", async () => {
  const { file } = await open(
    `a: { role: viewer, projects: [{ id: ${shop}, role: operator }] }\nb: { projects: [{ id: ${shop}, role: viewer }, { id: ${app}, role: admin }] }\n`,
  );
  await file.start();
  const own = { role: "member", projects: [{ id: app, role: "viewer" }] } as const;
  expect(file.known(["b", "elsewhere", "a", "b", "constructor"])).toEqual(["b", "a"]);
  expect(file.rightsOf(own, ["b", "a", "elsewhere", "constructor"])).toEqual({
    role: "viewer",
    projects: expect.arrayContaining([
      { id: shop, role: "operator" },
      { id: app, role: "admin" },
    ]),
  });
  expect(file.rightsOf(own)).toEqual(own);
});

test("a file that is broken at the start stops it, and later its last version applies", async () => {
  const broken = await open("a: {");
  await expect(broken.file.start()).rejects.toThrow(/HERALD_GATEWAY_OIDC_GROUPS_FILE: .*: line \d+, column \d+/);
  const { replace, file, lines } = await open("a: { role: viewer }\n");
  await file.start();
  await replace("a: { role: boss }\n");
  await eventually(() => expect(lines.join()).toContain("the groups file is broken"), { timeoutMs: 10_000 });
  expect(file.known(["a"])).toEqual(["a"]);
  await replace("b: { role: admin }\n");
  await eventually(() => expect(file.known(["a", "b"])).toEqual(["b"]), { timeoutMs: 10_000 });
});
