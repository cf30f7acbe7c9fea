import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Herald } from "@herald/client";
import { Scope } from "@herald/contracts";
import { eventually, expectStatus, faultyProxy } from "@herald/testing";
import { expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import type { Project } from "./harness/project.ts";
import { newAddress, seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { shellBlocks } from "./harness/shell-blocks.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const root = join(import.meta.dirname, "..");
let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

const rowsOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

const exportToken = async ({ id }: Project): Promise<string> => {
  const token = { name: "export", scopes: [...Scope.options] };
  return expectStatus(await system.admin(`POST /projects/${id}/tokens`, { body: { token } }), 201).body.token;
};

/** A project with devices of each platform, and a notification that one of them has opened. */
const withHistory = async (): Promise<Project> => {
  const project = await system.project("Export", ["apns", "fcm", "webpush"]);
  await system.simulators.script([]);
  for (const platform of ["ios", "android", "web"] as const)
    await project.register({ platform, ...(await newAddress(system.simulators, platform)), topics: ["news"] });
  await project.register({ platform: "ios", provider: "fcm", token: "fcm-of-an-iphone", metadata: { note: "=1+1" } });
  const { id } = await project.send({ title: "Hello", targets: ["topic:news"] });
  await project.final(id);
  const pushes = (await system.simulators.pushes()).filter((push) => payloadOf(push)?.notification_id === id);
  const { token = "" } = pushes[0] ? payloadOf(pushes[0]) : {};
  expectStatus(await project.call(`PUT /notifications/${id}/open`, { body: { project_id: project.id, token } }), 204);
  // Statistics include the open a second or two later.
  await eventually(async () => expect((await project.notification(id)).opens?.time_to_open).toBeDefined());
  // Registry reads the open by itself.
  await eventually(async () =>
    expect((await project.devices()).filter((device) => device.last_opened_at !== undefined)).toHaveLength(1),
  );
  return project;
};

/** Runs the blocks of a page in a new folder, and returns a reader of its files. */
const runPage = async (name: string, headings: readonly string[], env: Record<string, string>) => {
  const page = await readFile(join(root, "docs/how-to", name), "utf8");
  const folder = join(system.folder, `${name}-${env.project}`);
  await mkdir(folder, { recursive: true });
  const script = headings.flatMap((heading) => shellBlocks(page, heading)).join("\n");
  await promisify(execFile)("sh", ["-e", "-c", script], { cwd: folder, env: { ...process.env, ...env } });
  return (file: string) => readFile(join(folder, file), "utf8");
};

test("the page about exports works as written", async () => {
  const project = await withHistory();
  const file = await runPage("export-data.md", ["A token", "Download", "Resume"], {
    gateway: system.gateway,
    project: project.id,
    HERALD_ADMIN_TOKEN: system.adminToken,
  });
  // An export that resumes after the last row adds no rows.
  expect(rowsOf(await file("devices.ndjson"))).toEqual(await project.devices());
  expect(rowsOf(await file("notifications.ndjson"))).toEqual(await project.notifications());
  const deliveries = rowsOf(await file("deliveries.ndjson"));
  expect(deliveries).toHaveLength(3);
  expect(deliveries[0]).toMatchObject({ status: "accepted", notification_id: expect.stringMatching(/^ntf_/) });
  const [open, ...others] = rowsOf(await file("opens.ndjson"));
  expect(others).toEqual([]);
  expect(open.id).toBe(`${open.notification_id}/${open.device_id}`);
  const csv = (await file("ios.csv")).split("\r\n");
  expect(csv).toHaveLength(4);
  expect(csv[0]).toMatch(/^id,token,platform,provider,/);
});

test("the page about leaving works as written: the file has what a sender needs", async () => {
  const project = await withHistory();
  const token = await exportToken(project);
  const file = await runPage("leave-herald.md", ["Take your devices", "Take your history", "Delete the project"], {
    gateway: system.gateway,
    project: project.id,
    token,
  });
  const devices = rowsOf(await file("devices.ndjson"));
  const web = devices.find(({ platform }) => platform === "web");
  expect(web.keys).toMatchObject({ p256dh: expect.any(String), auth: expect.any(String) });
  expect((await file("fcm-tokens.txt")).trim().split("\n").sort()).toEqual(
    devices
      .filter(({ provider }) => provider === "fcm")
      .map(({ token: one }) => one)
      .sort(),
  );
  expect(rowsOf(await file("deliveries.ndjson"))).toHaveLength(3);
});

test("the client reads every row of a large project once, and takes its filters", async () => {
  const project = await system.project("Large");
  const ids = (await seed(system, project, 2_500, { platform: "ios", topics: ["news"] })).map(({ id }) => id);
  const herald = new Herald({ url: system.gateway, token: await exportToken(project) });
  const found: string[] = [];
  for await (const device of herald.exports.devices()) found.push(device.id);
  expect(found).toEqual(ids.toSorted());
  for await (const _ of herald.exports.devices({ platform: "android" })) throw new Error("there is none");

  const few = (await seed(system, project, 20, { platform: "ios", topics: ["few"] })).map(({ id }) => id);
  const matched: string[] = [];
  for await (const { id } of herald.exports.devices({ match: "topic:few" })) matched.push(id);
  expect(matched.toSorted()).toEqual(few.toSorted());

  const labels = { campaign: "spring" };
  const { id } = await project.send({ title: "Hello", targets: ["topic:none"], kind: "offers", labels });
  await project.send({ title: "Hello", targets: ["topic:none"] });
  for (const filter of [{ kind: "offers" }, { label: "campaign:spring" }])
    await eventually(async () => {
      const ids = [];
      for await (const notification of herald.exports.notifications(filter)) ids.push(notification.id);
      expect(ids).toEqual([id]);
    });
});

test("the command line writes files and pipes, and says how to resume", async () => {
  const project = await system.project("Command line");
  const count = 4_000;
  const ids = (await seed(system, project, count, { platform: "ios", topics: ["news"] }))
    .map(({ id }) => id)
    .toSorted();
  const token = await exportToken(project);
  const cli = commandLine({ HOME: system.folder, HERALD_URL: system.gateway, HERALD_TOKEN: token });
  const file = join(system.folder, "exported-devices.ndjson");
  expect(await cli.herald("device", "export", file)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining("Wrote 4,000 rows"),
  });
  expect(rowsOf(await readFile(file, "utf8")).map(({ id }) => id)).toEqual(ids);

  const csv = await cli.herald("device", "export", "--format", "csv", "--after", ids[count - 3] ?? "");
  expect(csv).toMatchObject({ exitCode: 0 });
  expect(csv.stdout.split("\r\n").map((line) => line.split(",")[0])).toEqual([...ids.slice(count - 2), ""]);

  const head = await cli.shell("set -o pipefail; herald device export | head -n 1").ended();
  expect(head.exitCode).toBe(0);
  expect(rowsOf(head.stdout).map(({ id }) => id)).toEqual(ids.slice(0, 1));

  const part = join(system.folder, "part.ndjson");
  const proxy = await faultyProxy(system.gateway, { answers: 200_000 });
  const stopped = cli.terminal(`herald device export ${part} --url ${proxy.url}`);
  await eventually(() => expect(stopped.written.stdout).toContain("rows…"));
  stopped.type("\u0003");
  expect(await stopped.ended()).toMatchObject({
    exitCode: 130,
    stdout: expect.stringMatching(/Wrote [\d,]+ rows\. `--after dev_\w+` resumes here/),
  });
  await proxy.stop();
  const written = rowsOf(await readFile(part, "utf8")).map(({ id }) => id);
  expect(await cli.herald("device", "export", part, "--after", written.at(-1))).toMatchObject({ exitCode: 0 });
  expect(rowsOf(await readFile(part, "utf8")).map(({ id }) => id)).toEqual(ids);

  const nowhere = await cli.herald("device", "export", join(system.folder, "none/devices.ndjson"));
  expect([nowhere.exitCode, nowhere.stderr]).toEqual([2, expect.stringContaining("ENOENT")]);
  const without = commandLine({ HOME: system.folder, HERALD_URL: system.gateway, HERALD_TOKEN: project.token });
  const refused = await without.herald("device", "export");
  expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringContaining("lacks the scope `export`")]);
});
