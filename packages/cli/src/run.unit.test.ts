import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answer, createHerald, problem, startGateway } from "../test/run-herald.ts";
import { parseApproval } from "./commands/approvals.ts";
import { candidates } from "./commands/completion.ts";
import { parseGrants } from "./commands/operators.ts";
import { keyIdOf } from "./commands/providers.ts";
import { contentOf, progressLine } from "./commands/send.ts";
import { labelFilter, parsePairs, parsePercent } from "./define.ts";
import { saveProfile } from "./profiles.ts";
import { createProgram } from "./program.ts";
import { createTerminal } from "./terminal/terminal.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "herald-cli-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

const herald = createHerald(() => home);
const gateway = (status: number, body: unknown, headers?: Record<string, string>) =>
  startGateway(answer(status, body, headers));

test.each([
  ["help", ["--help"], 0],
  ["help of a command", ["send", "--help"], 0],
  ["no command", [], 2],
  ["no such command", ["frob"], 2],
  ["no such option", ["device", "list", "--frob"], 2],
  ["no argument", ["device", "get"], 2],
  ["one argument too many", ["stats", "x"], 2],
  ["an option without its value", ["send", "--title"], 2],
  ["a value that is no choice", ["send", "--priority", "huge"], 2],
  ["a repeated value that is no choice", ["token", "create", "--name", "x", "--scope", "send", "--scope", "all"], 2],
  ["a word where a number belongs", ["device", "list", "--limit", "all"], 2],
  ["a share that is none", ["send", "--canary", "1 per cent"], 2],
  ["no url", ["device", "list"], 2],
  ["a url that is none", ["device", "list", "--url", "herald", "--token", "x"], 2],
  ["a profile that is not there", ["device", "list", "--profile", "x"], 2],
  ["a file that is not there", ["send", "--file", "/none.json", "--url", "http://localhost", "--token", "x"], 2],
])("%s ends with its exit code", async (_, words, exitCode) => {
  const result = await herald(words);
  expect(result.exitCode).toBe(exitCode);
  expect(exitCode === 0 ? result.stdout : result.stderr).not.toBe("");
  expect(result.stderr).not.toContain("    at ");
});

test("every command says what it does, and its options too", () => {
  const program = createProgram(
    createTerminal({ env: {}, stdin: {}, stdout: {}, stderr: {} } as never),
    async () => {},
  );
  const walk = (command: typeof program): void => {
    if (command.name().startsWith("_")) return;
    expect(command.description(), command.name()).not.toBe("");
    for (const option of command.options) expect(option.description, `${command.name()} ${option.flags}`).not.toBe("");
    command.commands.forEach(walk);
  };
  walk(program);
});

test("help fits 40 columns", () => {
  const surroundings = { env: {}, stdin: {}, stdout: { isTTY: true, columns: 40 }, stderr: {} };
  const program = createProgram(createTerminal(surroundings as never), async () => {});
  const walk = (command: typeof program): void => {
    const [_usage, ...lines] = stripVTControlCharacters(command.helpInformation()).split("\n");
    // A single word cannot be wrapped.
    for (const line of lines) if (/\S\s\S/.test(line)) expect(line.length, line).toBeLessThanOrEqual(40);
    command.commands.forEach(walk);
  };
  walk(program);
});

test("a label of a flag is a filter of the API", () => {
  expect(labelFilter("campaign=a:b=c")).toBe("campaign:a:b=c");
  expect(() => labelFilter("campaign")).toThrow("--label campaign: must be name=value");
});

test("flags go before the environment, and that before the profile", async () => {
  const page = { data: [], next: null };
  const { url, asked } = await gateway(200, page);
  await saveProfile({ HOME: home }, "default", { url, token: "of-the-profile" });
  await saveProfile({ HOME: home }, "other", { url, token: "of-the-other" });
  await herald(["topic", "list"]);
  await herald(["topic", "list", "--profile", "other"]);
  await herald(["topic", "list"], { HERALD_PROFILE: "other" });
  await herald(["topic", "list"], { HERALD_TOKEN: "of-the-environment" });
  await herald(["--token", "of-the-flag", "topic", "list"], { HERALD_TOKEN: "of-the-environment" });
  expect(asked.map(({ token }) => token)).toEqual([
    "of-the-profile",
    "of-the-other",
    "of-the-other",
    "of-the-environment",
    "of-the-flag",
  ]);
});

test("a profile is for its owner's eyes alone", async () => {
  const file = await saveProfile({ XDG_CONFIG_HOME: join(home, "xdg") }, "default", {
    url: "http://localhost",
    token: "x",
  });
  expect(file).toBe(join(home, "xdg/herald/profiles.json"));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ default: { url: "http://localhost", token: "x" } });
  await writeFile(file, "{");
  const { exitCode, stderr } = await herald(["topic", "list"], { XDG_CONFIG_HOME: join(home, "xdg") });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${file} is not JSON.`)]);
});

test.each([
  [400, "malformed-request", 2],
  [401, "unauthenticated", 3],
  [403, "forbidden", 3],
  [404, "device-not-found", 4],
  [409, "topic-exists", 5],
  [410, "notification-gone", 4],
  [413, "body-too-large", 2],
  [422, "validation-failed", 2],
  [429, "rate-limited", 6],
  [500, "internal", 1],
  [503, "bus-unavailable", 7],
])("a %i is shown in Herald's words, with what to do, the request and an exit code", async (status, slug, exitCode) => {
  const { url } = await gateway(status, problem(status, slug), { "retry-after": "7" });
  const words = ["device", "get", "dev_1", "--url", url, "--token", "x", "--retries", "0"];
  const result = await herald(words);
  expect(result.exitCode).toBe(exitCode);
  const [sentence, ...rest] = result.stderr.trim().split("\n");
  expect(sentence).toBe(`${slug}: in Herald's words (${status} ${slug})`);
  expect(rest.at(-1)).toBe("request req-1");
  if (![400, 410].includes(status)) expect(rest).toHaveLength(2);
  if ([429, 503].includes(status)) expect(rest[0]).toContain("in 7 s");

  const json = await herald([...words, "--json"]);
  expect(JSON.parse(json.stderr)).toMatchObject({
    exit_code: exitCode,
    error: { slug, status, errors: [`${slug}: in Herald's words`], problems: [{ pointer: "/x" }], request_id: "req-1" },
  });
  expect(json.stdout).toBe("");
});

test("all problems are shown, a line each", async () => {
  const { url } = await gateway(422, problem(422, "validation-failed", ["a: must be b", "c: must be d"]));
  const { stderr } = await herald(["send", "--url", url, "--token", "x"]);
  expect(stderr).toMatch(/^a: must be b \(422 validation-failed\)\nc: must be d\n/);
});

test("what destroys is not done without a terminal to confirm on", async () => {
  const { url, asked } = await gateway(204, undefined);
  const refused = await herald(["device", "delete", "dev_1", "--url", url, "--token", "x"]);
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("--yes")]);
  expect(asked).toEqual([]);
  expect(await herald(["device", "delete", "dev_1", "--yes", "--url", url, "--token", "x"])).toMatchObject({
    exitCode: 0,
  });
});

test("a list as JSON is one document, however it is paged", async () => {
  const { url } = await gateway(200, { data: [{ id: "top_1" }, { id: "top_2" }], next: null });
  const { stdout } = await herald(["topic", "list", "--json", "--url", url, "--token", "x"]);
  expect(JSON.parse(stdout)).toEqual([{ id: "top_1" }, { id: "top_2" }]);
  const limited = await herald(["topic", "list", "--json", "--limit", "1", "--url", url, "--token", "x"]);
  expect(JSON.parse(limited.stdout)).toEqual([{ id: "top_1" }]);
  expect(limited.stderr).toContain("--all");
});

test.each([
  [["a=1", "b=x=y", "c="], { a: "1", b: "x=y", c: "" }],
  [[], {}],
])("pairs %j are %j", (pairs, expected) => expect(parsePairs(pairs)).toEqual(expected));
test.each([["a"], ["=1"]])("%s is no pair", (pair) => expect(() => parsePairs([pair])).toThrow("must be name=value"));

test("flags go before the file that a notification is in", async () => {
  const file = join(home, "notification.json");
  await writeFile(file, JSON.stringify({ notification: { title: "File", body: "File", targets: ["all"] } }));
  const flags = { title: "Flag", to: ["topic:news"], data: ["a=1"], kind: "news", label: ["campaign=a=b"] };
  const presentation = { urgency: "passive", relevance: 0, thread: "t", icon: "https://example.com/i.png" };
  expect(await contentOf({ file, ...flags, ...presentation, androidChannel: "orders" })).toEqual({
    ...presentation,
    android_channel: "orders",
    kind: "news",
    labels: { campaign: "a=b" },
    title: "Flag",
    body: "File",
    targets: ["topic:news"],
    data: { a: "1" },
  });
});

test.each([
  ["/keys/AuthKey_ABC123DEFG.p8", "ABC123DEFG"],
  ["key.p8", undefined],
])("the key's id of %s is %s", (file, expected) => expect(keyIdOf(file)).toBe(expected));

test("live counts are one line", () => {
  const counts = {
    devices: 1_000,
    accepted: 480,
    failed: 20,
    pending: 500,
    expired: 0,
    cancelled: 0,
    skipped: 0,
    opened: 0,
  };
  expect(progressLine({ status: "sending", counts } as never, 40)).toBe("████░░░░ 500 of 1,000, 20 failed");
  expect(progressLine({ status: "sending", counts } as never, 80)).toBe(
    "██████████░░░░░░░░░░ sending: 500 of 1,000, 480 accepted, 20 failed",
  );
  expect(
    progressLine(
      { status: "accepted", counts: { ...counts, devices: 0, pending: 0, accepted: 0, failed: 0 } } as never,
      80,
    ),
  ).toContain("0 of 0");
  const paused = { at: "2030-01-01T00:00:00.000Z", by: { id: "opr_1", name: "Ann" }, reason: "the wrong link" };
  expect(progressLine({ status: "paused", counts, paused } as never, 80)).toBe(
    "██████████░░░░░░░░░░ 500 of 1,000, paused by Ann at 2030-01-01T00:00:00.000Z, because: the wrong link",
  );
});

test.each([
  ["1%", 0.01],
  ["0.7%", 0.007],
  ["100%", 1],
  ["0.05", 0.05],
  ["1", 1],
  ["5", undefined],
  ["101%", undefined],
  ["-1%", undefined],
  ["%", undefined],
])("the share %s is %j", (text, expected) => expect(parsePercent(text)).toBe(expected));

test("the options of a rollout are its fields", async () => {
  const of = async (options: object) => (await contentOf({ to: ["all"], ...options })).rollout;
  expect(await of({ canary: 0.01, canaryWait: "30m", perMinute: 600, stopIf: ["unregistered", "failed=5%"] })).toEqual({
    canary: { share: 0.01, wait: "30m" },
    per_minute: 600,
    stop_if: { failed: 0.05, unregistered: true },
  });
  expect(await of({ canary: 0.5 })).toEqual({ canary: { share: 0.5 } });
  expect(await of({})).toBeUndefined();
  await expect(of({ canaryWait: "30m" })).rejects.toThrow("--canary-wait needs --canary");
  await expect(of({ stopIf: ["unregistered"] })).rejects.toThrow("needs --stop-if failed");
  for (const wrong of ["failed", "failed=5", "failed=x%", "expired=5%"])
    await expect(of({ stopIf: [wrong] })).rejects.toThrow(`--stop-if ${wrong}: must be failed=5%`);
});

const rollout = {
  ...{ canary: { share: 0.01 }, per_minute: 60_000, stop_if: { failed: 0.05 }, phase: "rolling", audience: 1_000_000 },
  ...{ released: 120_000, rate: 59_980, next_at: "2030-01-31T09:12:10.000Z", outcomes: 118_211, failed: 402 },
};
const rolled = {
  ...{ id: "ntf_1", status: "sending", targets: ["all"], unmatched: [], failures: {}, skips: {}, rollout },
  counts: {
    devices: 120_000,
    accepted: 117_809,
    failed: 402,
    pending: 1_789,
    opened: 0,
    receipts_asked: 0,
    received: 0,
  },
};

test("live counts of a rollout show its phase and share", () => {
  const line = (more: object, width: number) =>
    progressLine({ ...rolled, rollout: { ...rollout, ...more } } as never, width);
  expect(line({}, 40)).toBe("░░░░░░░░ rolling: 12 %, 402 failed");
  expect(line({ phase: "held", held: "throttled" }, 80)).toBe(
    "██░░░░░░░░░░░░░░░░░░ held, throttled: 12 % of 1,000,000, 117,809 accepted, 402 failed",
  );
  expect(line({ phase: "done" }, 80)).toContain("sending: 118,211 of 120,000");
  expect(line({ audience: undefined }, 80)).toContain("sending: 118,211 of 120,000");
});

test("a notification shows its rollout in words", async () => {
  const held = { ...rollout, phase: "held", held: "few-outcomes" };
  const { url } = await startGateway(
    answer(200, { data: rolled }),
    answer(200, { data: { ...rolled, rollout: held } }),
  );
  const get = async () => (await herald(["notification", "get", "ntf_1", "--url", url, "--token", "x"])).stdout;
  const shown = (await get()).replaceAll(/ {2,}/g, ": ");
  for (const line of [
    "rollout: rolling: released 120,000 devices of about 1,000,000 (12 %)",
    "canary: 1 %, the others after 10m",
    "speed: 59,980 of at most 60,000 a minute",
    "next part: 2030-01-31T09:12:10.000Z",
    "outcomes: 402 of 118,211 devices failed (0.34 %), stops above 5 %",
  ])
    expect(shown).toContain(`${line}\n`);
  expect(await get()).toMatch(/^held +fewer than 50 devices have an outcome to judge by$/m);
});

test("a send that is watched ends with 8 when its rollout stopped by itself, and waits when a person paused it", async () => {
  const paused = { at: "2030-01-01T00:00:00.000Z", reason: "6 of 100 devices failed: 6 %, more than 5 %" };
  const stopped = answer(200, { data: { ...rolled, status: "paused", paused } });
  const byPerson = { ...rolled, status: "paused", paused: { ...paused, by: { id: "opr_1" } } };
  const done = answer(200, { data: { ...rolled, status: "completed", completed_at: "2030-01-01T00:00:01.000Z" } });
  const send = async (...reads: (typeof stopped)[]) => {
    const { url } = await startGateway((response) => {
      const { method, url: asked = "" } = response.req;
      if (method === "POST") return answer(202, { data: rolled })(response);
      if (asked.startsWith("/api/v1/events")) return answer(404, problem(404, "not-found"))(response);
      (reads.length > 1 ? reads.shift() : reads[0])?.(response);
    });
    return herald(["send", "--title", "x", "--to", "all", "--watch", "--url", url, "--token", "x"]);
  };
  const { exitCode, stdout, stderr } = await send(stopped);
  expect(exitCode).toBe(8);
  expect(stdout).toMatch(/^paused +by its rollout at .*, because: 6 of 100 devices failed: 6 %, more than 5 %$/m);
  expect(stderr).toContain("`herald notification resume ntf_1` goes on");
  expect(await send(answer(200, { data: byPerson }), done)).toMatchObject({ exitCode: 0 });
});

const approval = {
  ...{ status: "proposed", limit: 10_000, devices: 48_200, sender: { id: "opr_1", name: "Ann" } },
  expires_at: "2030-01-04T00:00:00.000Z",
};
const counts = { devices: 0, accepted: 0, failed: 0, pending: 0, cancelled: 0, expired: 0, receipts_asked: 0 };
const proposed = {
  ...{ id: "ntf_1", status: "proposed", title: "Sale", targets: ["all"], unmatched: [], failures: {}, skips: {} },
  ...{ counts, approval },
};

test("a proposed send says for whom it waits, also when it is watched, and ends with 0", async () => {
  const { url } = await startGateway((response) => {
    const { method, url: asked = "" } = response.req;
    if (asked.startsWith("/api/v1/events")) return answer(404, problem(404, "not-found"))(response);
    answer(method === "POST" ? 202 : 200, { data: proposed })(response);
  });
  const send = (...words: string[]) =>
    herald(["send", "--title", "Sale", "--to", "all", ...words, "--url", url, "--token", "x"]);
  const waits = /until 2030-01-04T.*, by an admin or an operator with .*: `herald notification approve ntf_1`/;
  const sent = await send();
  expect(sent).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^Proposed as ntf_1\.$/m) });
  expect(sent.stdout).toMatch(waits);
  const watched = await send("--watch");
  expect(watched).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(waits) });
  expect(watched.stdout.replaceAll(/ {2,}/g, ": ")).toContain(
    "approval: waits until 2030-01-04T00:00:00.000Z\nsender: Ann\nestimate: about 48,200 devices; more than 10,000 need approval\n",
  );
});

test("a list shows how many devices a proposed notification would reach", async () => {
  const { url } = await gateway(200, { data: [proposed], next: null });
  const { stdout } = await herald(["notification", "list", "--status", "proposed", "--url", url, "--token", "x"]);
  expect(stdout).toMatch(/^ntf_1 +proposed +48,200 +0 /m);
});

test("an operator approves or rejects with a reason, as the project's admin commands do", async () => {
  const decided = { by: { id: "opr_2", name: "Maria" }, at: "2030-01-01T00:00:00.000Z", reason: "checked" };
  const { url, asked } = await startGateway(
    answer(200, {
      data: { ...proposed, status: "accepted", approval: { ...approval, status: "approved", ...decided } },
    }),
    answer(200, {
      data: { ...proposed, status: "cancelled", approval: { ...approval, status: "rejected", ...decided } },
    }),
    answer(409, problem(409, "audience-grew")),
  );
  const admin = ["--url", url, "--admin-token", "x", "--project", "prj_1"];
  const decide = (decision: string) => herald(["notification", decision, "ntf_1", "--reason", "checked", ...admin]);
  const approved = await decide("approve");
  expect(approved.stdout).toMatch(/^approval +approved by Maria at 2030-01-01T00:00:00\.000Z, because: checked$/m);
  expect(approved.stdout).not.toMatch(/NaN|undefined/);
  expect((await decide("reject")).stdout).toMatch(/^approval +rejected by Maria at .*, because: checked$/m);
  expect(await decide("approve")).toMatchObject({
    exitCode: 5,
    stderr: expect.stringContaining("run the command again"),
  });
  expect(asked.map((one) => one.url)).toEqual(
    ["approve", "reject", "approve"].map((decision) => `/admin/v1/projects/prj_1/notifications/ntf_1/${decision}`),
  );
});

test("the rule of approval is a number of devices, or off", () => {
  expect(["10000", "off", undefined].map(parseApproval)).toEqual([{ devices: 10_000 }, null, undefined]);
  expect(() => parseApproval("1%")).toThrow("--approval 1%: must be a number of devices such as 10000, or off.");
});

test("a grant may approve", () => {
  const grant = ["prj_1=operator+approve", "prj_2=viewer"];
  expect(parseGrants({ grant })).toEqual([
    { id: "prj_1", role: "operator", approve: true },
    { id: "prj_2", role: "viewer" },
  ]);
  for (const wrong of ["prj_1=approve", "prj_1=+approve", "prj_1=operator+"])
    expect(() => parseGrants({ grant: [wrong] })).toThrow("the role must be one of viewer, operator, admin; +approve");
});

test("a dry run says how many devices the canary has, and how long the rollout takes", async () => {
  const devices = { total: 1, ios: 1, android: 0, web: 0 };
  const found = { dry_run: true, devices, unmatched: [], rendered: {}, sizes: {} };
  const { url } = await gateway(200, { data: { ...found, rollout: { canary_devices: 1, minutes: 27 } } });
  const { stdout } = await herald(["send", "--title", "x", "--to", "all", "--dry-run", "--url", url, "--token", "x"]);
  expect(stdout).toMatch(/^canary +1 device\nrollout +at least 27 minutes$/m);
});

test.each([
  [["dev"], ["device"]],
  [
    ["device", ""],
    ["deactivate", "delete", "export", "get", "import", "list", "notifications", "preferences"],
  ],
  [
    ["device", "list", "--status", ""],
    ["active", "inactive"],
  ],
  // bash splits at the equals sign, zsh does not.
  [["device", "list", "--status", "=", "in"], ["inactive"]],
  [
    ["device", "list", "--status", "="],
    ["active", "inactive"],
  ],
  [["device", "list", "--status=in"], ["--status=inactive"]],
  [["device", "import", "--format", "one"], ["onesignal"]],
  [["token", "create", "--scope", "ex"], ["export"]],
  [["events", "follow", "--type", "io.herald.notification.op"], ["io.herald.notification.opened.v1"]],
  [
    ["provider", "set", ""],
    ["apns", "fcm", "webpush"],
  ],
  [
    ["provider", "get", ""],
    ["apns", "fcm", "webpush"],
  ],
  [["send", "--pri"], ["--priority"]],
  [
    ["send", "--priority", ""],
    ["high", "normal"],
  ],
  [["send", "--title", ""], []],
  [["device", "list", "--al"], ["--all"]],
  [["completion", "z"], ["zsh"]],
])("after %j come %j", (words, expected) => {
  const program = createProgram(
    createTerminal({ env: {}, stdin: {}, stdout: {}, stderr: {} } as never),
    async () => {},
  );
  expect(candidates(program, words)).toEqual(expected);
});

/** Moves the cursor of a terminal, hides and reorders text, and ends a line in a program that reads JSON as JavaScript. */
const strange = "a\u001b[2J\u009b2Jb\u202ec\u2066d\u2028e\u{e0041}f\u200dg";
/** What a terminal acts on: all control characters but line breaks. */
const acting = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/u;

test.each([
  ["--json of one", ["device", "get", "dev_1", "--json"], { data: { id: "dev_1", name: strange } }],
  ["--json of many", ["device", "list", "--json"], { data: [{ id: "dev_1", name: strange }], next: null }],
])("%s leaves nothing in that a terminal acts on, and is the same JSON", async (_, words, body) => {
  const { url } = await gateway(200, body);
  for (const isTTY of [true, false]) {
    const { stdout } = await createHerald(() => home, isTTY)([...words, "--url", url, "--token", "x"]);
    expect(stdout).not.toMatch(acting);
    expect([JSON.parse(stdout)].flat()).toEqual([body.data].flat());
  }
});

test("an error in JSON and one in words leave nothing in that a terminal acts on", async () => {
  const { url } = await gateway(422, problem(422, "validation-failed", [strange]));
  const words = ["device", "get", "dev_1", "--url", url, "--token", "x", "--no-color"];
  const json = await createHerald(() => home, true)([...words, "--json"]);
  expect(json.stderr).not.toMatch(acting);
  expect(JSON.parse(json.stderr).error.errors).toEqual([strange]);
  expect((await createHerald(() => home, true)(words)).stderr).not.toMatch(acting);
});

test("an export to a terminal leaves nothing in that it acts on, and to a pipe is as Herald sent it", async () => {
  const row = `${JSON.stringify({ id: "opn_1", button: strange })}\n`;
  const { url } = await startGateway((response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" }).end(row);
  });
  const words = ["open", "export", "--url", url, "--token", "x"];
  const shown = await createHerald(() => home, true)(words);
  expect(shown.stdout).not.toMatch(acting);
  expect(JSON.parse(shown.stdout)).toEqual(JSON.parse(row));
  expect((await herald(words)).stdout).toBe(row);
});

test("words around strangers' texts leave nothing in that a terminal acts on", async () => {
  const preview = { ios: { payload: { title: strange }, bytes: 7, problems: [strange] } };
  const { url } = await gateway(200, { data: preview });
  const words = ["template", "preview", "x", "--url", url, "--token", "x", "--no-color"];
  expect((await createHerald(() => home, true)(words)).stdout).not.toMatch(acting);
});
