import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { eventually } from "@herald/testing";
import { expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { settingsFor } from "./harness/providers.ts";
import { type QuickCommandLine, quickSignedIn } from "./harness/quick-command-line.ts";
import { seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let home: string;
let cli: QuickCommandLine;

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  home = join(system.folder, "home");
  project = await system.project("Command line");
  cli = await quickSignedIn(system, "person", project);
});
logOnFailure(() => system);

const ctrlC = "\u0003";

/** Removes control sequences. */
const read = (text: string) => stripVTControlCharacters(text).replaceAll("\r", "");

test("its help has examples", async () => {
  const { stdout } = await commandLine({ HOME: home }).herald("--help");
  expect(stdout).toContain("$ herald doctor");
  expect(stdout).toContain("Exit codes:");
});

test("login --local uses npm start's system, and saves a file that only its owner can read", async () => {
  const env = { HOME: join(home, "local") };
  const local = commandLine(env).shell(`cd ${system.folder} && herald login --local`);
  expect(await local.ended()).toMatchObject({ exitCode: 0 });
  const file = join(env.HOME, ".config/herald/profiles.json");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, "utf8")).default).toMatchObject({ url: system.gateway });
  expect(await commandLine(env).herald("device", "list")).toMatchObject({ exitCode: 0 });
});

test("in a checkout the running system is used without flags, and everything that is given goes before it", async () => {
  const env = { HOME: join(home, "checkout") };
  await mkdir(join(system.folder, "deeper"), { recursive: true });
  const here = (command: string, more = {}) =>
    commandLine({ ...env, ...more })
      .shell(`cd ${system.folder}/deeper && herald ${command}`)
      .ended();
  const [doctor, listed, json, apart, given, flagged] = await Promise.all([
    here("doctor"),
    here("topic list"),
    here("topic list --json"),
    here("topic list", { HERALD_DATA_DIR: join(home, "elsewhere") }),
    here("topic list", { HERALD_URL: "http://127.0.0.1:1", HERALD_TOKEN: "x" }),
    here("topic list --retries 0", { HERALD_DATA_DIR: join(system.folder, ".herald"), HERALD_TOKEN: "hpt_x" }),
  ]);
  const using = `Using ${system.gateway}, which \`npm start\` runs (${join(system.folder, ".herald/local.json")}).`;
  expect(doctor.stderr).toContain(using);
  expect(doctor.stdout).toMatch(/^✓ token is valid; [\s\S]*^✓ admin token is valid/m);
  expect(listed).toMatchObject({ exitCode: 0, stderr: expect.stringContaining(using) });
  expect(json).toMatchObject({ exitCode: 0, stderr: "" });
  expect(apart).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("This needs Herald's address") });
  expect(given.stderr).not.toContain("Using");
  expect(given).toMatchObject({ exitCode: 7 });
  expect(flagged).toMatchObject({ exitCode: 3, stderr: expect.stringContaining(using) });
});

test("login prompts without echoing tokens, and saves no unknown token", async () => {
  const env = { HOME: join(home, "asked") };
  const asked = commandLine(env).terminal("herald login");
  await eventually(() => expect(asked.written.stdout).toContain("Herald's address:"));
  asked.type(`${system.gateway}\r`);
  await eventually(() => expect(asked.written.stdout).toContain("Project token"));
  asked.type(`${project.token}\r`);
  await eventually(() => expect(asked.written.stdout).toContain("Admin token"));
  asked.type("\r");
  const { exitCode, stdout } = await asked.ended();
  expect([exitCode, read(stdout)]).toEqual([0, expect.stringContaining("Signed in")]);
  expect(stdout).not.toContain(project.token);
  expect(await commandLine(env).herald("topic", "list")).toMatchObject({ exitCode: 0 });

  const left = commandLine({ HOME: join(home, "left") }).terminal("herald login");
  await eventually(() => expect(left.written.stdout).toContain("Herald's address:"));
  left.type(ctrlC);
  expect(await left.ended()).toMatchObject({ exitCode: 130, stdout: expect.stringContaining("Nothing was done.") });
  await expect(stat(join(home, "left"))).rejects.toThrow("ENOENT");

  const wrong = await commandLine({ HOME: join(home, "wrong"), HERALD_URL: system.gateway }).herald(
    "login",
    "--token",
    "x",
  );
  expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining("does not know this project token")]);
  await expect(stat(join(home, "wrong"))).rejects.toThrow("ENOENT");
});

test("projects, tokens and providers are created, used and deleted", async () => {
  const { json, herald } = cli;
  const { id, token } = await json("project", "create", "--name", "Made by hand");
  expect(token).toMatch(/^hpt_/);
  expect(await json("project", "get", id)).toMatchObject({ id, name: "Made by hand" });
  expect((await json("project", "list", "--all")).map((one: { id: string }) => one.id)).toContain(id);
  expect(await json("project", "limits", id)).toContainEqual(
    expect.objectContaining({ name: "devices", limit: 10_000_000, used: 0, variable: "HERALD_REGISTRY_QUOTA_DEVICES" }),
  );
  expect((await herald("project", "limits", id)).stdout).toMatch(/sends: .* 0 .* 3600 s .*HERALD_GATEWAY_QUOTA_SENDS/);
  const made = await json("token", "create", "--project", id, "--name", "mailer", "--scope", "send", "--scope", "read");
  expect(made).toMatchObject({ scopes: ["send", "read"], token: expect.stringMatching(/^hpt_/) });
  expect(await json("token", "list", "--project", id)).toHaveLength(2);

  const { simulators } = JSON.parse(await readFile(join(system.folder, ".herald/local.json"), "utf8"));
  const keys = join(system.folder, "keys");
  await mkdir(keys);
  const apns = settingsFor("apns", simulators) as { private_key: string };
  const { service_account } = settingsFor("fcm", simulators) as { service_account: unknown };
  await writeFile(join(keys, "AuthKey_E2EKEY0001.p8"), apns.private_key);
  await writeFile(join(keys, "ca.pem"), simulators.ca);
  await writeFile(join(keys, "account.json"), JSON.stringify(service_account));
  const to = (provider: "apns" | "fcm" | "webpush") => [
    ...["--project", id, "--endpoint", simulators[provider], "--ca", join(keys, "ca.pem")],
  ];
  const app = [
    "--key",
    join(keys, "AuthKey_E2EKEY0001.p8"),
    "--team-id",
    "E2ETEAM001",
    "--bundle-id",
    "com.example.e2e",
  ];
  const set = ["provider", "set"];
  expect(await json(...set, "apns", ...app, "--environment", "sandbox", ...to("apns"))).toMatchObject({
    status: "active",
  });
  await json(...set, "fcm", "--service-account", join(keys, "account.json"), ...to("fcm"));
  const { settings } = await json(...set, "webpush", "--subject", "mailto:e2e@example.com", ...to("webpush"));
  expect(settings.public_key).toMatch(/^B/);
  const shown = await herald("provider", "get", "apns", "--project", id);
  expect(shown.stdout).toContain("E2EKEY0001");
  expect(shown.stdout).not.toContain("PRIVATE KEY");
  const tried = ["provider", "test", "apns", "--project", id];
  expect(await json(...tried, "--push-token", apnsToken())).toMatchObject({ result: "accepted" });
  await system.simulators.script([{ provider: "apns", tokenPrefix: "dead", status: 400, reason: "BadDeviceToken" }]);
  const refused = await herald(...tried, "--push-token", apnsToken("dead"));
  expect(refused.stdout).toContain("BadDeviceToken");
  expect(refused.exitCode).toBe(1);
  await system.simulators.script([]);
  expect(await herald("provider", "delete", "fcm", "--project", id, "--yes")).toMatchObject({ exitCode: 0 });
  expect(await herald("provider", "get", "fcm", "--project", id)).toMatchObject({ exitCode: 4 });

  const sends = ["send", "--title", "Hello", "--to", "all", "--watch"];
  expect(await json(...sends, "--token", made.token)).toMatchObject({ status: "completed", counts: { devices: 0 } });
  await json("token", "revoke", made.id, "--project", id);
  await eventually(async () => expect(await herald(...sends, "--token", made.token)).toMatchObject({ exitCode: 3 }));
  expect(await herald("project", "delete", id)).toMatchObject({ exitCode: 2 });
  expect(await herald("project", "delete", id, "--yes")).toMatchObject({ exitCode: 0, stdout: `Deleted ${id}.\n` });
});

test("devices, topics and users", async () => {
  const { json, herald } = cli;
  const { device } = await project.register({ user_id: "u-1", topics: ["news"] });
  const { device: other } = await project.register({ user_id: "u-2" });
  expect((await json("device", "list")).map(({ id }: { id: string }) => id)).toEqual([other.id, device.id]);
  expect(await json("device", "get", device.id)).toMatchObject({ user_id: "u-1", topics: ["news"] });
  expect(await json("device", "deactivate", other.id)).toMatchObject({ status: "inactive" });
  expect(await json("device", "list", "--status", "inactive")).toHaveLength(1);

  expect(await json("topic", "create", "quiet", "--closed")).toMatchObject({ name: "quiet", closed: true });
  expect(await json("topic", "open", "quiet")).toMatchObject({ closed: false });
  expect(await json("topic", "close", "quiet")).toMatchObject({ closed: true });
  expect(await json("topic", "subscribe", "quiet", device.id, other.id)).toMatchObject({ changed: 2 });
  expect(await json("topic", "unsubscribe", "quiet", device.id)).toMatchObject({ changed: 1 });
  expect(await json("topic", "get", "quiet")).toMatchObject({ devices: 1 });
  expect((await json("topic", "list")).map(({ name }: { name: string }) => name)).toEqual(["quiet", "news"]);
  expect(await herald("topic", "delete", "quiet", "--yes")).toMatchObject({ exitCode: 0 });

  expect((await herald("user", "get", "u-1")).stdout).toContain(device.id);
  expect(await json("user", "erase", "u-1", "--yes")).toMatchObject({ user_id: "u-1" });
  expect(await herald("user", "get", "u-1")).toMatchObject({ exitCode: 4 });
  expect(await herald("device", "delete", other.id, "--yes")).toMatchObject({ exitCode: 0 });
  expect(await herald("device", "get", other.id)).toMatchObject({ exitCode: 4 });
});

test("notifications are sent, watched, listed, traced and cancelled", async () => {
  const { json, herald, screen, shell, terminal } = cli;
  const { device } = await project.register({ topics: ["sport"] });
  const dry = await herald("send", "--title", "Hello", "--to", "topic:sport", "--dry-run");
  expect(dry.stdout).toMatch(/^devices\s+1$/m);
  expect(dry.stdout).toContain("Nothing was sent.");

  const content = ["--title", "Goal", "--body", "1:0", "--link", "/games/1", "--data", "game=1", "--ttl", "600"];
  const sent = await json("send", ...content, "--to", "topic:sport", "--key", "goal-1");
  expect(sent).toMatchObject({ title: "Goal", link_to: "/games/1", data: { game: "1" }, ttl: 600 });
  expect((await json("send", ...content, "--to", "topic:sport", "--key", "goal-1")).id).toBe(sent.id);
  const followed = await json("send", "--title", "Goal", "--to", `device:${device.id}`, "--escalate-after", "600");
  expect(followed).toMatchObject({ escalate_after: 600 });
  await project.final(sent.id);
  expect(await json("notification", "get", sent.id)).toMatchObject({ status: "completed", counts: { accepted: 1 } });
  expect((await herald("notification", "get", sent.id)).stdout).toMatch(/^accepted\s+1$/m);
  expect(await json("notification", "deliveries", sent.id)).toMatchObject([{ device_id: device.id }]);
  expect((await herald("notification", "trace", sent.id, device.id)).stdout).toContain("topic:sport");

  const piped = shell(
    `echo '{ "body": "2:0", "targets": ["topic:sport"] }' | herald send --file - --title Goal --json`,
  );
  const second = JSON.parse((await piped.ended()).stdout);
  expect(second).toMatchObject({ title: "Goal", body: "2:0" });
  const later = await json(
    "send",
    "--title",
    "Later",
    "--to",
    "all",
    "--at",
    new Date(Date.now() + 3_600_000).toISOString(),
  );
  // A 202 promises a GET by id; a list contains a notification once dispatch has stored it.
  await eventually(async () => {
    const newest = await json("notification", "list", "--limit", "2");
    expect(newest.map(({ id }: { id: string }) => id)).toEqual([later.id, second.id]);
  });
  expect(await json("notification", "cancel", later.id)).toMatchObject({ status: "cancelled" });
  expect((await json("notification", "list", "--all")).length).toBeGreaterThan(2);

  const watched = await terminal(`herald send --title Watched --to ${device.id} --watch`).ended();
  expect(watched.exitCode).toBe(0);
  expect(read(watched.stdout)).toMatch(/accepted +1\n/);

  await eventually(async () => expect((await json("stats")).totals.sent).toBeGreaterThanOrEqual(3), {
    timeoutMs: 30_000,
  });
  const labelled = await screen(`send --title Labelled --to ${device.id} --kind news --label campaign=spring --watch`);
  expect(labelled.text).toMatch(/labels +campaign=spring\n/);
  await eventually(async () => {
    expect((await screen("stats --by label:campaign")).text).toMatch(/spring +1 +0/);
    expect((await json("stats", "--label", "campaign=spring")).totals.sent).toBe(1);
  });
  const narrow = read((await terminal("herald stats", 40).ended()).stdout);
  expect(narrow).toMatch(/^sent \d/m);
  expect(narrow).toContain("█");
  expect(Math.max(...narrow.split("\n").map((line) => line.length))).toBeLessThanOrEqual(40);
  const table = (await screen("notification list", 40)).text.trim().split("\n");
  expect(table.slice(0, 2)).toEqual(["ID", expect.stringMatching(/^ {2}STATUS +DEVICES +FAILED/)]);
  expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(40);
});

test("a rollout is planned, and its progress is shown while it releases devices", { timeout: 90_000 }, async () => {
  await seed(system, project, 150, { topics: ["crowd"] });
  const send = "send --title Rolled --to topic:crowd --per-minute 600 --stop-if failed=5% --stop-if unregistered";
  const dry = await cli.screen(`${send} --canary 0.5 --canary-wait 1m --dry-run`);
  expect(dry.text).toMatch(/^canary +75 devices\nrollout +at least 2 minutes$/m);
  const watched = await cli.screen(`${send} --watch`);
  expect(watched.exitCode).toBe(0);
  expect(watched.text).toMatch(/rolling: [\d.]+ % of 150, \d+ accepted/);
  expect(watched.text).toMatch(/^rollout +done: released 150 devices of about 150 \(100 %\)$/m);
  expect(watched.text).toMatch(/^outcomes +0 of 150 devices failed \(0 %\), stops above 5 % with unregistered$/m);
});

test("a file of recipients is rehearsed, and the summary of its send names who has no device", async () => {
  const { device } = await project.register({ user_id: "r-1" });
  const file = join(system.folder, "people.csv");
  await writeFile(file, "target,n\nuser:r-1,1\nuser:r-1,2\ntopic:news,3\nuser:gone,4\n");
  const before = await system.simulators.pushes({ token: device.token });
  const send = ["send", "--title", "No. {{ n }}", "--var", "n=", "--recipients", file];
  const dry = await cli.herald(...send, "--dry-run");
  expect(dry).toMatchObject({ exitCode: 1, stderr: "" });
  expect(dry.stdout).toMatch(
    /^2 recipients, 1 line refused, 1 duplicate\.\n {2}line 4: target: .*\nNothing was sent\..*\n$/,
  );
  const newest = async () => (await cli.json("notification", "list", "--limit", "1"))[0];
  const rehearsed = await newest();
  expect(rehearsed).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
  expect(await system.simulators.pushes({ token: device.token })).toEqual(before);
  expect(await cli.herald(...send.slice(0, -1), `${file}.gone`)).toMatchObject({ exitCode: 2 });
  expect((await newest()).id).toBe(rehearsed.id);

  const sent = await cli.herald(...send, "--watch");
  expect(sent).toMatchObject({ exitCode: 0 });
  expect(sent.stdout).toMatch(/^accepted +1$/m);
  expect(sent.stdout).toMatch(/^2 recipients, 1 line refused, 1 duplicate, 1 without a device\.$/m);
  expect(sent.stdout).toMatch(/^ {2}line 4: target: .*\n {2}line 5: target: .*device/m);
});

test("events are followed from a time, and from a position", async () => {
  const since = new Date().toISOString();
  for (const name of ["one", "two"]) await cli.herald("topic", "create", name);
  const follow = ["events", "follow", "--type", "io.herald.topic.created.v1", "--count", "1", "--json"];
  const first = JSON.parse((await cli.herald(...follow, "--since", since)).stdout);
  expect(first.data.topic).toBe("one");
  const second = JSON.parse((await cli.herald(...follow, "--after", first.position)).stdout);
  expect(second.data.topic).toBe("two");
});
