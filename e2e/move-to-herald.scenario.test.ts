import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { test } from "./harness/shared-system.ts";
import { shellBlocks } from "./harness/shell-blocks.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const root = join(import.meta.dirname, "..");
const fixtures = join(root, "services/registry/src/imports/formats/fixtures");
let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/**
 * Each page, the fixture of its export, its numbers of created and refused devices, and how many of the created have a user and a time zone.
 */
const pages = [
  ["pinpoint", "pinpoint.ndjson", 3, 2, 1, 1],
  ["sns", "sns.ndjson", 3, 2, 0, 0],
  ["onesignal", "onesignal.csv", 4, 2, 2, 2],
  ["firebase", "firebase.ndjson", 3, 1, 2, 0],
  ["gorush", "gorush.csv", 2, 0, 1, 0],
  ["parse", "parse.ndjson", 4, 1, 2, 1],
  ["pnta", "pnta.ndjson", 2, 0, 1, 0],
] as const;

/** What the importer reads that OneSignal exports only on request. */
const onRequest = ["external_user_id", "timezone_id", "country", "notification_types", "web_auth", "web_p256"];

test("the page on OneSignal requests every field that the importer reads", async () => {
  const page = await readFile(join(root, "docs/how-to/move-from-onesignal.md"), "utf8");
  const [, fields = ""] = page.match(/'\{"extra_fields": (\[.*\])\}'/) ?? [];
  expect(JSON.parse(fields)).toEqual(onRequest);
  const [header = ""] = (await readFile(join(fixtures, "onesignal.csv"), "utf8")).split("\n");
  expect(header.split(",")).toEqual(expect.arrayContaining(onRequest));
});

test.for(pages)(
  "docs/how-to/move-from-%s.md works as it is written",
  async ([name, fixture, created, refused, users, zones]) => {
    const project = await system.project(name);
    const page = await readFile(join(root, `docs/how-to/move-from-${name}.md`), "utf8");
    const folder = join(system.folder, `move-from-${name}`);
    await mkdir(folder, { recursive: true });
    const commands = shellBlocks(page, "Import");
    const [, file = ""] = commands[0]?.match(/import (\S+)/) ?? [];
    const source = join(fixtures, fixture);
    if (file.endsWith(".gz")) await writeFile(join(folder, file), gzipSync(await readFile(source)));
    else await copyFile(source, join(folder, file));
    const { shell } = commandLine({ HOME: folder, HERALD_URL: system.gateway, HERALD_TOKEN: project.token });

    const run = (command: string) => shell(`cd ${folder} && ${command}`).ended();
    const exitCode = refused > 0 ? 1 : 0;
    const [dryRun = "", forReal = ""] = commands;
    const first = await run(dryRun);
    expect(first, first.stderr).toMatchObject({
      exitCode,
      stdout: expect.stringContaining("Dry run: nothing was changed"),
    });
    expect(await project.devices()).toEqual([]);
    const second = await run(forReal);
    expect(second, second.stderr).toMatchObject({ exitCode });
    expect(second.stdout).toContain(
      `created ${created}, updated 0, left unchanged 0 devices, and refused ${refused} ${refused === 1 ? "line" : "lines"}`,
    );
    for (const { stdout } of [first, second])
      expect(stdout).toMatch(new RegExp(`Of the devices, ${users} have a user, ${zones} a time zone, `));
    expect(second.stdout.match(/^ {2}line \d+: /gm)?.length ?? 0).toBe(refused);
    expect(await project.devices()).toHaveLength(created);
  },
);
