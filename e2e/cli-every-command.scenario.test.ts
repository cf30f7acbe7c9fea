import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, operateBroker } from "@herald/testing";
import { expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { settingsFor } from "./harness/providers.ts";
import { type QuickCommandLine, quickCommandLine } from "./harness/quick-command-line.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let cli: QuickCommandLine;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Every command", ["apns", "fcm", "webpush"]);
  cli = quickCommandLine({
    HOME: join(system.folder, "home-of-every-command"),
    HERALD_URL: system.gateway,
    HERALD_TOKEN: project.token,
    HERALD_ADMIN_TOKEN: system.adminToken,
    HERALD_PROJECT: project.id,
  });
});
logOnFailure(() => system);

/** All commands that completion offers, with the commands of groups one level deep. */
const commands = async (): Promise<string[]> => {
  const complete = async (...words: string[]) =>
    (await cli.herald("__complete", "--", ...words, "")).stdout.split("\n").filter(Boolean);
  const found: string[] = [];
  for (const group of await complete()) {
    const names = await complete(group);
    found.push(...(names.length === 0 ? [group] : names.map((name) => `${group} ${name}`)));
  }
  return found;
};

test("every command works at a terminal of 80 columns", { timeout: 400_000 }, async () => {
  const ran = new Set<string>();
  /** Runs a command, and returns the capture of its pattern. In a table that is too wide, the id is above the other cells. */
  const run = async (words: string, pattern: RegExp, exitCode = 0): Promise<string> => {
    const [first = "", second = ""] = words.split(" ");
    ran.add(all.includes(first) ? first : `${first} ${second}`);
    const { exitCode: ended, text } = await cli.screen(words, 80);
    expect.soft([ended, text], words).toEqual([exitCode, expect.stringMatching(pattern)]);
    return pattern.exec(text)?.[1] ?? "";
  };
  const all = await commands();

  await run("login", /Signed in to/);
  await run("project list --all", new RegExp(project.id));
  const other = await run("project create --name Other", /^id +(prj_\w+)$/m);
  await run(`project get ${other}`, /^name +Other$/m);
  await run(`project update ${other} --name Renamed`, /^name +Renamed$/m);
  await run(`project update ${other} --key other`, /^key +other$/m);
  await run(`project limits ${other}`, /^sends: .*\n.*HERALD_GATEWAY_QUOTA_SENDS$/m);
  await run(`project set-limits ${other} --limit sends=7`, /\b7, default 10,000,000/);
  await run(`project update ${other} --quiet-hours 22:00-07:00/skip`, /^quiet hours +22:00 07:00 skip$/m);
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await run(`project pause ${other} --until ${tomorrow} --reason typo`, /^paused +by .*, until 20.*, because: typo$/m);
  await run(`project resume ${other}`, /^name +Renamed$/m);
  await run("installation pause", /^paused +by /m);
  await run("installation get", /^paused +by /m);
  await run("installation resume", /^paused +no$/m);
  const file = join(system.folder, "other.yaml");
  await run(`project export ${other} --file ${file}`, /^Wrote /m);
  await run(`apply --file ${file} --check`, /^No difference\.$/m);
  await run(`project delete ${other} --yes`, /^Deleted prj_/m);
  await run("kind put offers --title Offers --cap 2/day --quiet-hours none", /^cap +2 per day$/m);
  await run("kind list", /offers +Offers +on +2 per day +none/);
  await run("kind get offers", /^critical +no$/m);
  await run("kind delete offers --yes", /^Deleted offers/m);
  const token = await run("token create --name mailer --scope send --scope export", /^id +(tok_\w+)$/m);
  await run("token list", /mailer +send, ex/);
  await run(`token revoke ${token}`, /^Revoked tok_/m);
  const operator = await run("operator create --name Maria --role viewer", /^id +(opr_\w+)$/m);
  await run("operator list", /Maria +viewer/);
  await run(`operator update ${operator} --role admin`, /^role +admin$/m);
  await run(
    `operator update ${operator} --role member --grant ${project.id}=operator`,
    /^projects +prj_\w+=operator$/m,
  );
  await run(`operator sign-out ${operator}`, /^Signed opr_\w+ out everywhere/m);
  await run(`operator token ${operator}`, /^token +hop_/m);
  await run(`operator delete ${operator} --yes`, /^Deleted opr_/m);
  await eventually(async () => {
    const rows = await cli.json("audit", "list", "--action", "deleteOperator");
    expect(JSON.stringify(rows)).toContain(operator);
  });
  await run("audit list --action deleteOperator", /deleteOperator/);
  await run("audit verify", /rows are unchanged/);

  const { simulators } = JSON.parse(await readFile(join(system.folder, ".herald/local.json"), "utf8"));
  const account = join(system.folder, "account.json");
  const ca = join(system.folder, "ca.pem");
  await writeFile(
    account,
    JSON.stringify((settingsFor("fcm", simulators) as { service_account: unknown }).service_account),
  );
  await writeFile(ca, simulators.ca);
  await run(
    `provider set fcm --service-account ${account} --endpoint ${simulators.fcm} --ca ${ca}`,
    /^status +active$/m,
  );
  await run("provider get apns", /^key_id +E2EKEY0001$/m);
  await run(`provider test apns --push-token ${apnsToken()}`, /^result +accepted$/m);
  await run("provider delete fcm --yes", /^Deleted fcm/m);

  const devices = join(system.folder, "devices.ndjson");
  await writeFile(devices, `${JSON.stringify({ token: apnsToken(), platform: "ios", user_id: "u-1" })}\n`);
  await run(`device import ${devices} --format herald`, /created 1,/);
  const device = await run("device list", /^(dev_\w+)\s+ios +active +u-1/m);
  await run(`device get ${device}`, /^user +u-1$/m);
  await run("kind put offers --title Offers", /^cap +none$/m);
  await run(`device preferences ${device} --off offers`, /^offers +off, by device$/m);
  await run(`device preferences ${device}`, /^offers +off, by device$/m);
  await run("user preferences u-1 --on offers --quiet-hours 22:00-07:00", /^quiet hours +22:00 to 07:00$/m);
  await run("user preferences u-1", /^offers +on, by user$/m);
  // Otherwise what is sent below would wait for the morning, where the test runs at night.
  await run("user preferences u-1 --quiet-hours none", /^offers +on, by default$/m);
  await run("topic create news", /^name +news$/m);
  await run("topic get news", /^closed +no$/m);
  await run("topic close news", /^closed +yes$/m);
  await run("topic open news", /^closed +no$/m);
  await run(`topic subscribe news ${device}`, /^changed +1$/m);
  await run("topic list", /news +1 +no/);

  const shipped = join(system.folder, "shipped.json");
  await writeFile(shipped, JSON.stringify({ title: "Order {{ n }}", variables: { n: { type: "number" } } }));
  const scopes = ["send", "read", "templates"].flatMap((scope) => ["--scope", scope]);
  const templates = `--token ${(await cli.json("token", "create", "--name", "templates", ...scopes)).token}`;
  await run(`template push ${shipped} ${templates}`, /^Stored the draft of shipped\.$/m);
  await run(`template publish shipped ${templates}`, /^Published shipped, version 1\.$/m);
  await run("template list", /^shipped +version 1 +the same$/m);
  await run("template versions shipped", /^ +1 +20/m);
  await run("template preview shipped --var n:=42", /"title": "Order 42"/);
  await run(`template pull --dir ${join(system.folder, "pulled")}`, /shipped\.json\.$/m);
  await run("send --push-type voip --app com.example.e2e --data call=17 --to topic:news --dry-run", /^devices +0$/m);
  await run("device list --app com.example.e2e", /^There are none/m);
  const order = join(system.folder, "order.json");
  const activity = { attributes_type: "Order", attributes: {}, targets: ["topic:news"], start: false };
  await writeFile(order, JSON.stringify({ ...activity, content_state: { minutes: 40 } }));
  await run(`activity start order-1 --file ${order}`, /^version +1$/m);
  const state = join(system.folder, "state.json");
  await writeFile(state, JSON.stringify({ content_state: { minutes: 12 } }));
  await run(`activity update order-1 --file ${state} --sequence 2`, /^version +2$/m);
  await run("activity get order-1", /^state +\{"minutes":12\}$/m);
  await run("activity end order-1", /^version +3$/m);
  await eventually(async () => {
    const pushes = await cli.json("notification", "list", "--push-type", "liveactivity");
    expect(pushes).toContainEqual(expect.objectContaining({ status: "completed" }));
  });
  await run("notification list --push-type liveactivity", /completed/m);
  await run("stats --by push_type", /sent/i);
  await run("send --template shipped --var n:=7 --to topic:news --dry-run", /"title": "Order 7"/);
  await run(`template delete shipped --yes ${templates}`, /^Deleted shipped\.$/m);

  const earlier = new Date(Date.now() - 600_000).toISOString();
  const sent = await run("send --title Hello --to topic:news --watch", /id +(ntf_\w+)$/m);
  await run("notification list --limit 5", new RegExp(`^${sent}\\s+completed +1`, "m"));
  await run(`notification get ${sent}`, /^accepted +1$/m);
  const people = join(system.folder, "everyone.csv");
  await writeFile(people, "target,n\nuser:u-none,1\n");
  const listed = await run(`send --title {{n}} --var n= --recipients ${people} --watch`, /id {2,}(ntf_\w+)$/m);
  await run(`notification recipients ${listed}`, /^1 recipient, .* 1 without a device\.\n {2}line 2: /m);
  await run(`notification deliveries ${sent}`, new RegExp(`^${device}\\s+accepted`, "m"));
  await run(`notification trace ${sent} ${device}`, /topic:news/);
  await run(`device notifications ${device}`, new RegExp(`^${sent}\\s+accepted`, "m"));
  const own = await run("send --title Own --to user:u-1 --watch", /id +(ntf_\w+)$/m);
  await run("user notifications u-1", new RegExp(`^${own}\\s+completed`, "m"));
  const later = await run(`send --title Later --to all --at ${tomorrow}`, /^Accepted as (ntf_\w+)/m);
  await run(`notification update ${later} --at ${tomorrow} --ttl 60`, /^send at +/m);
  const { token: approver } = await cli.json("operator", "create", "--name", "Jon", "--role", "admin");
  for (const decision of ["approve", "reject"])
    await run(`notification ${decision} ${later} --admin-token ${approver}`, /needs no approval/, 5);
  await run(`notification pause ${later} --reason typo`, /^paused +by tok_\w+ at .*, because: typo$/m);
  await run(`notification resume ${later}`, /^status +scheduled$/m);
  await run(`notification cancel ${later}`, /^status +cancelled$/m);
  await run("stats", /^sent/m);
  await run(`events follow --since ${earlier} --count 1`, /io\.herald\./);
  await run("user list", /^u-1 +1/m);
  await run("user get u-1", new RegExp(device));

  const { token: exporter } = await cli.json("token", "create", "--name", "export", "--scope", "export");
  for (const noun of ["device", "notification", "delivery", "open", "receipt"])
    await run(`${noun} export ${join(system.folder, noun)} --token ${exporter}`, /^Wrote \d+ rows? to/m);

  const webhook = await run("webhook create http://127.0.0.1:9/", /^id +(whk_\w+)$/m);
  await run("webhook list", new RegExp(`^${webhook}\\s+enabled`, "m"));
  await run(`webhook get ${webhook}`, /^events +all$/m);
  await run(`webhook rotate-secret ${webhook}`, /^secret +whsec_/m);
  const message = await run(`webhook ping ${webhook}`, /^id +(\S+)$/m);
  await run(`webhook messages ${webhook}`, /io\.herald\.webhook\.ping/);
  await run(`webhook message ${webhook} ${message}`, /^type +io\.herald\.webhook\.ping/m);
  await run(`webhook resend ${webhook} ${message}`, /^id +\S+$/m);
  await run(`webhook recover ${webhook} --since ${new Date(Date.now() - 60_000).toISOString()}`, /messages are queued/);
  await run(`webhook disable ${webhook}`, /^enabled +no: requested$/m);
  await run(`webhook enable ${webhook}`, /^enabled +yes$/m);
  await run(`webhook delete ${webhook} --yes`, /^Deleted whk_/m);

  await run(`topic unsubscribe news ${device}`, /^changed +1$/m);
  await run("topic delete news --yes", /^Deleted news/m);
  await run(`device deactivate ${device}`, /^status +inactive$/m);
  await run(`device delete ${device} --yes`, /^Deleted dev_/m);
  await run(`device import ${devices} --format herald`, /created 1,/);
  await run("user erase u-1 --yes", /^erased +20/m);

  const broker = await operateBroker(system.broker);
  await broker.publish(`push.cmd.v1.dispatch.send.${project.id}.x`, "no JSON").finally(() => broker.close());
  const letter = await eventually(async () => {
    const letters: { id: string; project_id?: string }[] = await cli.json("dead-letters", "list");
    const [own] = letters.filter((one) => one.project_id === project.id);
    if (!own) throw new Error("there is no dead letter yet");
    return own.id;
  });
  await run("dead-letters list", new RegExp(`^${letter}\\s+dispatch-`, "m"));
  await run(`dead-letters get ${letter}`, /^reason/m);
  await run(`dead-letters replay ${letter}`, /replayed/);
  await run("status", /^PUSH_EVENTS/m);
  await run("doctor", /dead letters/, 1);
  await run("completion bash", /complete -o default/);
  await run("completion zsh", /compdef/);

  expect([...ran].toSorted()).toEqual(all.toSorted());
});
