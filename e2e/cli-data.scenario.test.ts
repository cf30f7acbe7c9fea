import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, faultyProxy } from "@herald/testing";
import { expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { type QuickCommandLine, quickCommandLine } from "./harness/quick-command-line.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let environment: Record<string, string>;
let cli: QuickCommandLine;

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Command line");
  environment = {
    HOME: join(system.folder, "home-of-data"),
    HERALD_URL: system.gateway,
    HERALD_TOKEN: project.token,
    HERALD_ADMIN_TOKEN: system.adminToken,
    HERALD_PROJECT: project.id,
  };
  cli = quickCommandLine(environment);
});
logOnFailure(() => system);

const screen = (words: string) => cli.screen(words);
/** The cells of the first table row with this beginning. */
const row = (text: string, begins: string): string[] | undefined =>
  text
    .split("\n")
    .find((line) => line.startsWith(begins))
    ?.trim()
    .split(/ {2,}/);

test("operators are created, changed, given another token and deleted", async () => {
  const { json, herald } = cli;
  const created = await screen("operator create --name 'Maria Lopez' --role viewer");
  expect(created).toMatchObject({ exitCode: 0, text: expect.stringMatching(/^name +Maria Lopez$/m) });
  const id = /^id +(opr_\w+)$/m.exec(created.text)?.[1] ?? "";
  const token = /^token +(hop_\S+)$/m.exec(created.text)?.[1] ?? "";
  const maria = (...words: string[]) => herald(...words, "--admin-token", token, "--retries", "0");
  expect(await maria("project", "get")).toMatchObject({ exitCode: 0 });
  const refused = await maria("project", "update", "--name", "Other");
  expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringContaining("(403 forbidden)")]);

  expect(row((await screen("operator list")).text, id)).toEqual([
    ...[id, "Maria Lopez", "viewer", "–", expect.stringMatching(/Z$/)],
  ]);
  expect(await json("operator", "list")).toEqual(expect.arrayContaining([expect.objectContaining({ id })]));
  expect((await screen("operator list")).text).not.toContain(token);
  expect(await json("operator", "update", id, "--role", "admin", "--name", "M. Lopez")).toMatchObject({
    ...{ id, name: "M. Lopez", role: "admin" },
  });
  await eventually(async () =>
    expect(await maria("project", "update", "--name", "Renamed")).toMatchObject({ exitCode: 0 }),
  );

  const { token: next } = await json("operator", "token", id);
  expect(next).toMatch(/^hop_/);
  await eventually(async () => expect(await maria("project", "get")).toMatchObject({ exitCode: 3 }));
  expect(await herald("project", "get", "--admin-token", next)).toMatchObject({ exitCode: 0 });

  expect(await herald("operator", "delete", id)).toMatchObject({ exitCode: 2 });
  const deleting = cli.terminal(`herald operator delete ${id}`);
  await eventually(() => expect(deleting.written.stdout).toContain("Type yes: "));
  deleting.type("yes\r");
  expect(await deleting.ended()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`Deleted ${id}.`) });
  expect(await herald("operator", "update", id, "--name", "x")).toMatchObject({ exitCode: 4 });
  expect(await herald("operator", "update", id)).toMatchObject({ exitCode: 2 });
  expect(await herald("operator", "create", "--name", "x", "--role", "owner")).toMatchObject({ exitCode: 2 });
});

test("the audit log is listed by its filters and verified", async () => {
  const { json } = cli;
  const { id } = await json("project", "create", "--name", "Short-lived");
  const since = new Date().toISOString();
  await json("project", "delete", id, "--yes");
  const rows = await eventually(async () => {
    const found = await json("audit", "list", "--action", "deleteProject", "--of-project", id);
    expect(found).toHaveLength(1);
    return found;
  });
  expect(rows).toMatchObject([{ action: "deleteProject", operator: { id: "root" } }]);
  const { text } = await screen(`audit list --after ${since} --operator root`);
  expect(text).toMatch(/^ROW +AT +OPERATOR +ACTION +TARGET +FROM$/m);
  expect(row(text, String(rows[0].sequence))).toContain("deleteProject");
  expect(await json("audit", "list", "--before", "2020-01-01T00:00:00Z")).toEqual([]);
  expect(await json("audit", "list", "--limit", "2")).toHaveLength(2);

  expect(await screen("audit verify")).toMatchObject({
    exitCode: 0,
    text: expect.stringMatching(/^All [\d,]+ rows are unchanged\./),
  });
  expect(await json("audit", "verify")).toMatchObject({ valid: true, checked: expect.any(Number) });
});

const ctrlC = "\u0003";
const lines = (count: number) =>
  Array.from(
    { length: count },
    () => `${JSON.stringify({ token: apnsToken(), platform: "ios", topics: ["moved"] })}\n`,
  );

test("device import shows its progress, and refused lines", async () => {
  const { json, herald } = cli;
  const file = join(system.folder, "devices.ndjson");
  await writeFile(file, lines(700).join(""));
  const dry = await screen(`device import ${file} --format herald --dry-run`);
  expect(dry.exitCode).toBe(0);
  expect(dry.text).toContain("Dry run: nothing was changed. The import would have created 700,");
  const imported = await screen(`device import ${file} --format herald`);
  expect(imported.exitCode).toBe(0);
  expect(imported.text).toMatch(/Uploading: [\d,]+ lines stored|% of 700 lines/);
  expect(imported.text).toContain("created 700, updated 0, left unchanged 0 devices, and refused 0 lines.");
  expect(await json("device", "import", file, "--format", "herald")).toMatchObject({
    ...{ status: "completed", unchanged: 700, errors: [] },
  });

  await appendFile(file, '{"token":"no","platform":"ios"}\n');
  const piped = await herald("device", "import", file, "--format", "herald");
  expect(piped).toMatchObject({ exitCode: 1, stderr: "", stdout: expect.stringContaining("  line 701: token: ") });
  const asJson = await herald("device", "import", file, "--format", "herald", "--json");
  expect(asJson.exitCode).toBe(1);
  expect(JSON.parse(asJson.stdout)).toMatchObject({ refused: 1, errors: [{ line: 701, field: "token" }] });
  for (const [words, sentence] of [
    [[file], "--format must be one of herald, pinpoint"],
    [[join(system.folder, "none"), "--format", "herald"], "ENOENT"],
    [[file, "--format", "csv"], "Allowed choices are herald, pinpoint"],
  ] as const) {
    const { exitCode, stderr } = await herald("device", "import", ...words);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  }
  expect(await herald("device", "import", file, "--resume", "imp_x")).toMatchObject({ exitCode: 4 });
});

test("device import says in a dry run which fields devices would not get", async () => {
  const { herald } = cli;
  const file = join(system.folder, "endpoints.csv");
  const header = "ChannelType,Address,User.UserId,Attributes.plan.name,Demographic.Timezone,Demographic.Make";
  const rows = ["GCM,t1,ann,pro,Europe/Berlin,google", "GCM,t2,,,Mars/Base,google", "SMS,+49,ann,,,"];
  await writeFile(file, [header, ...rows].join("\n"));
  const { stdout, exitCode } = await herald("device", "import", file, "--format", "pinpoint", "--dry-run");
  expect(exitCode).toBe(1);
  expect(stdout.trimEnd().split("\n")).toEqual([
    "Dry run: nothing was changed. The import would have created 2, updated 0, left unchanged 0 devices, and refused 1 line.",
    "Herald has no provider for the platforms of 1 of them.",
    "Of the devices, 1 have a user, 1 a time zone, 0 a locale and 0 a time when they were last seen.",
    "Fields of the file that devices did not get:",
    "  Demographic.Make: 2 lines, a device has nothing for it",
    "  Demographic.Timezone: 1 line, not valid",
    "Fields with another name, because of the characters in theirs:",
    "  Attributes.plan.name: metadata.plan_name in 1 line",
    "Why lines were refused:",
    "  line 4: is for phone numbers (SMS): Herald has no provider for it",
  ]);
});

test("Ctrl-C during an import prints how to resume it, and resuming loses nothing", async () => {
  const mine = await system.project("Interrupted");
  const count = 3_000;
  const file = join(system.folder, "many.ndjson");
  await writeFile(file, lines(count).join(""));
  const { terminal, json } = commandLine({ ...environment, HERALD_TOKEN: mine.token });
  const proxy = await faultyProxy(system.gateway, { requests: 120_000 });
  const running = terminal(`herald device import ${file} --format herald --url ${proxy.url}`, 200);
  await eventually(() => expect(running.written.stdout).toContain("lines"));
  running.type(ctrlC);
  const { exitCode, stdout } = await running.ended();
  await proxy.stop();
  const id = /Continue with: herald device import \S+ --resume (imp_\w+)/.exec(stdout)?.[1] ?? "";
  expect([exitCode, id], stdout).toEqual([130, expect.stringMatching(/^imp_/)]);
  const resumed = await json("device", "import", file, "--resume", id);
  expect(resumed).toMatchObject({ ...{ id, status: "completed", created: count, refused: 0, errors: [] } });
  // After the import is complete, the same command shows its report again.
  expect(await json("device", "import", file, "--resume", id)).toMatchObject({ id, created: count });
});

test("users, the notifications of a device, and lists and statistics by label", async () => {
  const { json } = cli;
  const { device } = await project.register({ user_id: "u-7" });
  await project.register({ user_id: "u-7" });
  expect(row((await screen("user list")).text, "u-7")).toEqual(["u-7", "2", expect.stringMatching(/Z$/)]);
  expect(await json("user", "list")).toEqual([expect.objectContaining({ user_id: "u-7", device_count: 2 })]);

  const send = (label: string) =>
    json("send", "--title", label, "--to", `device:${device.id}`, "--label", `campaign=${label}`, "--watch");
  const spring = await send("spring");
  const { id: own } = await json("send", "--title", "Own", "--to", "user:u-7", "--watch");
  expect(row((await screen("user notifications u-7")).text, own)?.at(-1)).toBe("Own");
  expect(await json("user", "notifications", "u-7")).toMatchObject([{ id: own }]);
  const fall = await send("fall");
  const { text } = await screen(`device notifications ${device.id}`);
  expect(text).toMatch(/^NOTIFICATION +RESULT +REASON +ATTEMPTS +AT +OPENED +TITLE$/m);
  expect(row(text, spring.id)).toEqual([
    ...[spring.id, "accepted", "–", "1", expect.stringMatching(/Z$/), "–", "spring"],
  ]);
  const timeline = await json("device", "notifications", device.id);
  expect(timeline.map((one: { notification: { id: string } }) => one.notification.id)).toEqual([
    ...[fall.id, own, spring.id],
  ]);
  expect(await json("device", "notifications", device.id, "--limit", "1")).toHaveLength(1);

  const listed = await screen("notification list --label campaign=spring");
  expect([row(listed.text, spring.id)?.at(-1), row(listed.text, fall.id)]).toEqual(["spring", undefined]);
  expect(await json("notification", "list", "--label", "campaign=none")).toEqual([]);
  const wrong = await cli.herald("notification", "list", "--label", "campaign");
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("must be name=value")]);

  await eventually(
    async () => {
      const byLabel = (await screen("stats --by label:campaign")).text;
      expect([row(byLabel, "spring")?.slice(0, 3), row(byLabel, "fall")?.slice(0, 3)]).toEqual([
        ["spring", "1", "0"],
        ["fall", "1", "0"],
      ]);
      expect(row((await screen("stats --by platform")).text, "ios")?.slice(0, 2)).toEqual(["ios", "4"]);
    },
    { timeoutMs: 30_000 },
  );
  const unknown = await cli.herald("stats", "--by", "color");
  expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining("by")]);
});

test("project update changes a project, and switches the retirement of stale devices on and off", async () => {
  const { json, herald } = cli;
  const update = ["project", "update"];
  expect(await json(...update, "--stale-after", "90d", "--name", "News")).toMatchObject({
    ...{ id: project.id, name: "News", stale_after: "90d" },
  });
  expect((await screen("project get")).text).toMatch(/^stale after +90d$/m);
  expect(await json(...update, project.id, "--stale-after", "off")).not.toHaveProperty("stale_after");
  expect((await screen("project get")).text).toMatch(/^stale after +off$/m);
  expect(await json(...update, "--open-registration", "on")).toMatchObject({ open_registration: true, name: "News" });
  expect(await json(...update, "--open-registration", "off")).toMatchObject({ open_registration: false });
  for (const words of [[], ["--stale-after", "3d"], ["--open-registration", "maybe"]]) {
    const { exitCode, stderr } = await herald(...update, ...words);
    expect([exitCode, stderr], stderr).toEqual([2, expect.stringMatching(/at least one|7d|on, off/)]);
  }
});
