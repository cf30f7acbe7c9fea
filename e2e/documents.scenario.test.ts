import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, expectStatus, request } from "@herald/testing";
import { generate } from "selfsigned";
import { expect } from "vitest";
import { runHttpFile } from "./harness/http-file.ts";
import { quickCommandLine } from "./harness/quick-command-line.ts";
import { seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { codeBlocks, shellBlocks } from "./harness/shell-blocks.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const root = join(import.meta.dirname, "..");
const run = promisify(execFile);
let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

test("every request of api.http gets the status in its title", async () => {
  const project = await system.project();
  const done = await runHttpFile(await readFile(join(root, "api.http"), "utf8"), {
    gateway: system.gateway,
    simulators: system.simulators.url,
    admin: system.adminToken,
    project: project.id,
    token: project.token,
  });
  expect(done.length).toBeGreaterThan(30);
});

test("the page on connecting providers works as written, and shows no secret", async () => {
  const { body } = await system.admin("POST /projects", { body: { project: { name: "Connected" } } });
  const apnsKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const fcmKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const certificate = await generate([{ name: "commonName", value: "Apple Push Services: com.example.app" }]);
  const secrets = {
    "AuthKey.p8": apnsKey.export({ type: "pkcs8", format: "pem" }).toString(),
    "aps-key.pem": certificate.private,
  };
  const account = {
    type: "service_account",
    project_id: "example-app",
    private_key_id: "0123456789abcdef0123456789abcdef01234567",
    private_key: fcmKey.export({ type: "pkcs8", format: "pem" }).toString(),
    client_email: "push@example-app.iam.gserviceaccount.com",
    client_id: "123456789012345678901",
  };
  for (const [name, text] of Object.entries(secrets)) await writeFile(join(system.folder, name), text);
  await writeFile(join(system.folder, "aps.pem"), certificate.cert);
  await writeFile(join(system.folder, "service-account.json"), JSON.stringify(account));

  const page = await readFile(join(root, "docs/how-to/connect-providers.md"), "utf8");
  const blocks = ["APNs", "FCM", "Web Push", "Show a provider's state"].flatMap((part) => shellBlocks(page, part));
  const { stdout } = await run("sh", ["-e", "-c", blocks.join("\necho\n")], {
    cwd: system.folder,
    env: { ...process.env, gateway: system.gateway, project: body.data.id, HERALD_ADMIN_TOKEN: system.adminToken },
  });

  const answers = stdout
    .trim()
    .split(/\n+/)
    .map((line) => JSON.parse(line));
  expect(answers.filter((answer) => answer.errors)).toEqual([]);
  expect(answers.map(({ data }) => data.provider ?? data)).toHaveLength(7);
  expect(answers[0].data.settings).toMatchObject({
    key_id: "ABC123DEFG",
    team_id: "TEAM123456",
    bundle_id: "com.example.app",
  });
  for (const secret of [...Object.values(secrets), account.private_key])
    expect(stdout).not.toContain(secret.split("\n")[1]);
});

/** Runs these parts of a page as in a clone of the repository. Returns the output and a reader of the files that they made. */
const runPage = async (name: string, headings: readonly string[], env: Record<string, string>) => {
  const page = await readFile(join(root, "docs/how-to", name), "utf8");
  const blocks = headings.flatMap((heading) => shellBlocks(page, heading));
  expect(blocks.length).toBeGreaterThanOrEqual(headings.length);
  const folder = await mkdtemp(join(system.folder, "page-"));
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  // `npx` takes a second each time to find what is on PATH; the tutorial's test runs it.
  const script = ['npx() { "$@"; }', ...blocks].join("\n");
  const { stdout } = await run("sh", ["-e", "-c", script], { cwd: folder, env: { ...shell, ...env } });
  return { stdout, file: (made: string) => readFile(join(folder, made), "utf8") };
};
const shell = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}`, NO_COLOR: "1" };

test("the page on sending many works as written: recipients get their own texts, and one of its notifications is refused", async () => {
  const { token, register } = await system.project("Many");
  const { device } = await register({ user_id: "u-17" });
  const env = { gateway: system.gateway, token };
  const one = await runPage("send-many.md", ["One notification, many recipients"], env);
  expect(JSON.parse(one.stdout).data).toMatchObject({ recipients: { kind: "user", lines: 2 }, targets: [] });
  await eventually(async () => {
    const [push] = await system.simulators.pushes({ token: device.token });
    expect(JSON.stringify(push?.payload)).toContain("Ann, your invoice over €12.30 is ready.");
  });
  const many = await runPage("send-many.md", ["More than 2,000 recipients"], env);
  expect(JSON.parse(many.stdout).data).toMatchObject({ recipients: 2, refused: 0, complete: true });
  const { stdout } = await runPage("send-many.md", ["Many notifications in one request"], env);
  expect(JSON.parse(stdout).data).toEqual([
    { id: expect.stringMatching(/^ntf_/) },
    { id: expect.stringMatching(/^ntf_/) },
    { errors: ["notifications.2.targets: at least one target is required"] },
  ]);
});

test("the page on stopping a send works as written: what it pauses, it resumes, and the last pause has an end", async () => {
  const project = await system.project("Stopped");
  const { id } = await project.send({
    title: "Wrong",
    targets: ["all"],
    send_at: new Date(Date.now() + 86_400_000).toISOString(),
  });
  const env = {
    HERALD_URL: system.gateway,
    HERALD_TOKEN: project.token,
    HERALD_ADMIN_TOKEN: system.adminToken,
    project: project.id,
    notification: id,
  };
  const { stdout } = await runPage(
    "stop-a-send.md",
    ["One notification", "Everything of a project", "Everything"],
    env,
  );
  for (const reason of ["the link leads to yesterday's sale", "wrong pushes from the shop", "an incident"])
    expect(stdout).toContain(`, because: ${reason}`);
  expect(await project.notification(id)).toMatchObject({ status: "cancelled" });
  const { data } = expectStatus(await system.admin(`GET /projects/${project.id}`), 200).body;
  expect(data.paused).toMatchObject({ of: "project", until: expect.any(String) });
});

test("the page on sending to everybody works as written: the rollout stops by itself, goes on, and is slowed down", {
  timeout: 180_000,
}, async () => {
  const name = "send-to-everybody.md";
  const project = await system.project("Everybody");
  const prefix = "5a1e";
  await seed(system, project, 600, { prefix });
  await system.simulators.script([{ provider: "apns", tokenPrefix: prefix, share: 0.3, status: 413 }]);
  const env = { HERALD_URL: system.gateway, HERALD_TOKEN: project.token };
  const { stdout } = await runPage(name, ["Plan", "Watch"], env);
  expect(stdout).toMatch(/^canary +6 devices\nrollout +at least 11 minutes$/m);
  expect(stdout).toMatch(/^paused +by its rollout at .*, because: \d+ of \d+ devices failed: .*, more than 5 %$/m);
  expect(stdout).toMatch(/^outcomes +\d+ of \d+ devices failed \(.* %\), stops above 5 %$/m);
  const [, notification = ""] = /^id +(ntf_\w+)$/m.exec(stdout) ?? [];

  await system.simulators.script([]);
  const stopped = await runPage(name, ["When it stopped"], { ...env, notification });
  expect(stopped.stdout).toMatch(/^dev_\w+ +failed/m);
  const { rollout, paused } = await project.notification(notification);
  expect([rollout?.audience, rollout?.per_minute, paused]).toEqual([600, 600, undefined]);

  const slower = await runPage(name, ["Slow down, pause, cancel"], { ...env, notification });
  expect(slower.stdout).toMatch(/^speed +.*at most 300 a minute$/m);
  expect(slower.stdout).toContain(", because: the shop is slow");
  const final = await project.final(notification);
  expect(final.status).toBe("cancelled");
  expect(final.counts.devices).toBeLessThan(600);
});

test("the page on asking a second person works as written: what one person sends, another approves or rejects", {
  timeout: 180_000,
}, async () => {
  const name = "ask-a-second-person.md";
  const project = await system.project("Two people");
  await seed(system, project, 1_100);
  const env = {
    HERALD_URL: system.gateway,
    HERALD_TOKEN: project.token,
    HERALD_ADMIN_TOKEN: system.adminToken,
    HERALD_PROJECT: project.id,
    project: project.id,
  };
  const ready = await runPage(name, ["Set it up"], env);
  expect(ready.stdout).toMatch(/^approval +for more than 1,000 devices$/m);
  expect(ready.stdout).toMatch(new RegExp(`^projects +${project.id}=viewer\\+approve$`, "m"));
  const [, approver = ""] = /^token +(hop_[\w-]+)$/m.exec(ready.stdout) ?? [];

  const sent = await runPage(name, ["Send"], env);
  expect(sent.stdout).toMatch(/^estimate +about 1,\d{3} devices; more than 1,000 need approval$/m);
  const [, notification = ""] = /^id +(ntf_\w+)$/m.exec(sent.stdout) ?? [];
  const asApprover = { ...env, HERALD_ADMIN_TOKEN: approver };
  const approved = await runPage(name, ["Approve"], { ...asApprover, notification });
  expect(approved.stdout).toMatch(new RegExp(`^${notification} +proposed`, "m"));
  expect(approved.stdout).toMatch(/^approval +approved by Jon Berg at .*, because: checked with marketing$/m);
  expect((await project.final(notification)).counts).toMatchObject({ devices: 1_100, accepted: 1_100 });

  const other = await project.send({ title: "Wrong", targets: ["all"] });
  expect(other.status).toBe("proposed");
  const rejected = await runPage(name, ["Reject"], { ...asApprover, notification: other.id });
  expect(rejected.stdout).toMatch(/^approval +rejected by Jon Berg at .*, because: the link leads to/m);
  expect(await project.notification(other.id)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
  expect((await runPage(name, ["What counts"], env)).stdout).toMatch(/\b5,000, default [\d,]+/);
});

test("the page on templates works as written: a draft is previewed, published and sent", async () => {
  const { id, register } = await system.project("Templates");
  const { device } = await register({ topics: ["news"] });
  const env = { HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken, HERALD_PROJECT: id };
  const { stdout } = await runPage("write-templates.md", ["By command line"], env);
  expect(stdout).toContain("Stored the draft of order-shipped.");
  expect(stdout).toContain('"body": "Hi friend, 2 parcels soon."');
  expect(stdout).toContain("Published order-shipped, version 1.");
  await eventually(async () => {
    const [push] = await system.simulators.pushes({ token: device.token });
    expect(JSON.stringify(push?.payload)).toContain("Order 42 has shipped");
  });
});

test("the page on Live Activities works as written: a card starts by push, and is updated and ended", async () => {
  const { id, token, register } = await system.project("Orders");
  const phone = await system.simulators.phone("com.example.e2e", { activities: ["OrderAttributes"] });
  const { device, credential } = await register({ token: phone.alert ?? "", user_id: "u_8412" });
  const store = async (key: string, value: string | null | undefined) =>
    expectStatus(
      await request(system.gateway, `PUT /api/v1/devices/${device.id}/tokens/${key}`, {
        token: credential,
        body: { token: { token: value } },
      }),
      204,
    );
  const startToken = phone["liveactivity/OrderAttributes"];
  await store("liveactivity/OrderAttributes", startToken);
  const page = await readFile(join(root, "docs/how-to/live-activities.md"), "utf8");
  const [start = "", rest = ""] = shellBlocks(page, "Start, update, end");
  const env = { ...shell, gateway: system.gateway, token, HERALD_URL: system.gateway, HERALD_TOKEN: token };
  const { stdout } = await run("sh", ["-e", "-c", start], { env });
  expect(JSON.parse(stdout).data).toMatchObject({ id: "order-4711", version: 1 });
  const card = await eventually(async () => {
    const [found] = await system.simulators.instances(startToken);
    if (!found) throw new Error("the card has not started");
    return found;
  });
  expect(card.attributes).toMatchObject({ order: "4711", herald: { activity: "order-4711", project_id: id } });
  await store("activity/order-4711", card.token);
  expect((await run("sh", ["-e", "-c", rest], { env })).stdout).toMatch(
    /^state +\{"status":"on its way","minutes":12\}$/m,
  );
  await eventually(async () => {
    const [ended] = await system.simulators.instances(startToken);
    expect(ended).toMatchObject({ state: "ended" });
    expect(ended?.shown.at(-1)?.contentState).toEqual({ status: "delivered", minutes: 0 });
  });
  const [viaChannel = ""] = shellBlocks(page, "Many followers: a broadcast channel");
  const { stdout: made } = await run("sh", ["-e", "-c", viaChannel], { env });
  expect(JSON.parse(made).data).toMatchObject({ id: "match-81", version: 1 });
});

test("the page on kinds works as written: what a person switched off is skipped, and the cap holds", async () => {
  const { id, token, call, register, send, final } = await system.project("Kinds");
  const { device, credential = "" } = await register({ user_id: "u-17" });
  const env = {
    HERALD_URL: system.gateway,
    HERALD_ADMIN_TOKEN: system.adminToken,
    HERALD_PROJECT: id,
    HERALD_TOKEN: token,
    gateway: system.gateway,
    device: device.id,
    credential,
  };
  // The hours of the page may be those of this moment: the sends below are critical, of a kind without hours, or silent.
  const { stdout } = await runPage("let-people-choose.md", ["Declare kinds", "Let people choose"], env);
  expect(stdout).toMatch(/\boffers +off, by device$/m);
  expect(stdout).toMatch(/^tips +on, by user$/m);
  expect(stdout).toMatch(/^quiet hours +21:00 to 08:00$/m);
  const skipsOf = async (content: Partial<Parameters<typeof send>[0]>) => {
    const sent = await send({ title: "Hello", targets: ["user:u-17"], ...content });
    return (await final(sent.id)).skips;
  };
  await eventually(async () => expect(await skipsOf({ kind: "offers" })).toEqual({ muted: 1 }));
  const tried = { title: "Hello", kind: "offers", targets: ["user:u-17"], dry_run: true };
  const { body } = await call("POST /notifications", { body: { notification: tried } });
  expect(body.data).toMatchObject({ skips: { muted: 1 }, evaluated_later: ["frequency-cap"] });
  const night = new Date(Date.now() + 86_400_000).toISOString().replace(/T.*/, "T23:00:00Z");
  const nightly = await call("POST /notifications", {
    body: { notification: { ...tried, kind: "tips", send_at: night } },
  });
  expect(nightly.body.data).toMatchObject({ skips: {}, evaluated_later: [] });
  expect(nightly.body.data.delayed).toEqual([
    { until: expect.stringMatching(/T08:00:00\.000Z$/), reason: "quiet-hours", devices: 1 },
  ]);
  const said = await run(
    "herald",
    "send --title Hello --kind tips --to user:u-17 --dry-run --at".split(" ").concat(night),
    {
      env: { ...shell, ...env },
    },
  );
  expect(said.stdout).toMatch(/^delayed until \S+T08:00:00\.000Z: 1 quiet-hours$/m);
  expect(await skipsOf({ kind: "security" })).toEqual({});
  expect(await skipsOf({ kind: "tips", silent: true, title: undefined, data: { tip: "1" } })).toEqual({});
});

test("the page on push types works as written: a call reaches the token that its app stored", async () => {
  const { token, register } = await system.project("Calls");
  const phone = await system.simulators.phone("com.example.e2e", { controls: ["garage-door"] });
  const { device, credential = "" } = await register({ token: phone.alert ?? "", user_id: "u_8412" });
  const env = { gateway: system.gateway, device: device.id, credential, voip_token: phone.voip ?? "" };
  await runPage("push-types.md", ["Register the token"], env);
  const control = { token: { token: phone["controls/garage-door"] } };
  const stored = await request(system.gateway, `PUT /api/v1/devices/${device.id}/tokens/controls/garage-door`, {
    token: credential,
    body: control,
  });
  expectStatus(stored, 204);
  await runPage("push-types.md", ["Send"], { HERALD_URL: system.gateway, HERALD_TOKEN: token });
  for (const [name, fields] of Object.entries({
    voip: { data: { call: "17", caller: "Ada" } },
    "controls/garage-door": {},
  }))
    await eventually(async () => {
      const [push] = await system.simulators.pushes({ token: phone[name] ?? "-" });
      expect(push).toMatchObject({ status: 200, payload: fields });
    });
});

test("the page on local time changes the time zone of a project as written", async () => {
  const { id } = await system.project("Zones");
  const env = { HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken, HERALD_PROJECT: id };
  await runPage("send-at-local-time.md", ["Give devices their time zone"], env);
  const { body } = await system.admin(`GET /projects/${id}`);
  expect(body.data.default_time_zone).toBe("Europe/Berlin");
});

test("the page on exports works as written, by command and by program", async () => {
  const project = await system.project("Exported");
  const { device } = await project.register({ platform: "ios", topics: ["news"] });
  const made = await system.admin(`POST /projects/${project.id}/tokens`, {
    body: { token: { name: "export", scopes: ["read", "export"] } },
  });
  const { token } = expectStatus(made, 201).body;
  const env = { HERALD_URL: system.gateway, HERALD_TOKEN: token };
  const { file } = await runPage("export-data.md", ["From the command line"], env);
  expect(JSON.parse(await file("devices.ndjson"))).toMatchObject({ id: device.id });
  expect(await file("failed.csv")).toMatch(/^id,notification_id,/);
  const page = await readFile(join(root, "docs/how-to/export-data.md"), "utf8");
  const known = `import { Herald } from "@herald/client";\nconst herald = new Herald(${JSON.stringify({ url: system.gateway, token })});\n`;
  const folder = await mkdtemp(join(system.folder, "page-"));
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "export.mts"), known + codeBlocks(page, "From a program", "ts").join(""));
  const { stdout } = await run(process.execPath, ["--conditions=@herald/source", "export.mts"], { cwd: folder });
  expect(stdout).toContain(device.id);
});

test("the page on campaigns works as written", async () => {
  const { token, register } = await system.project("Campaigns");
  await register({ platform: "ios", token: "5b".repeat(32), topics: ["news"] });
  const env = { HERALD_URL: system.gateway, HERALD_TOKEN: token };
  expect((await runPage("measure-campaigns.md", ["Send and ask"], env)).stdout).toMatch(/ntf_/);
  await eventually(async () => {
    const { stdout } = await quickCommandLine({ HOME: system.folder, ...env }).herald(
      "stats",
      "--by",
      "label:campaign",
    );
    expect(stdout).toMatch(/spring +1\b/);
  });
});

test("the page on projects in files works as written: what it exports does not differ", async () => {
  const { body } = await system.admin("POST /projects", { body: { project: { name: "In a file" } } });
  const env = { HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken, project: body.data.id };
  const { stdout } = await runPage("keep-a-project-in-a-file.md", ["An existing project"], env);
  expect(stdout).toMatch(/Wrote demo\.yaml\.[\s\S]*No difference\.\n$/);
});

test("the page on limits works as written", async () => {
  const project = await system.project("Limits");
  const env = { HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken, project: project.id };
  const { stdout } = await runPage("set-limits.md", ["For one project"], env);
  expect(stdout).toMatch(/\b200,000, default [\d,]+/);
});

test("the page on operators works as written", async () => {
  const project = await system.project("Operators");
  const env = { HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken, project: project.id };
  const parts = ["The first operators", "One team, one project", "For a project", "Who did what"];
  const { stdout, file } = await runPage("operators.md", parts, env);
  expect(stdout).toContain("hop_");
  expect(stdout).toContain("Maria Lopez");
  expect(stdout).toContain(`${project.id}=operator`);
  expect(stdout).toContain('"data":[]');
  expect(await file("audit.ndjson")).toContain("Maria Lopez");
});
