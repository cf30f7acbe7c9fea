import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { SystemStatus } from "@herald/contracts";
import { freePort } from "@herald/provision";
import { eventually, expectStatus, faultyProxy } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signedIn } from "./harness/command-line.ts";
import type { Project } from "./harness/project.ts";
import { type QuickCommandLine, quickSignedIn } from "./harness/quick-command-line.ts";
import { seed } from "./harness/seed.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";

let system: System;
let project: Project;
let cli: QuickCommandLine;
beforeAll(async () => {
  system = await startSystem({ env: { HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "false" } });
  project = await system.project("Bad days");
  cli = await quickSignedIn(system, "person", project);
});
afterAll(() => system?.stop());
logOnFailure(() => system);

const ctrlC = "\u0003";

/** Removes control sequences. */
const read = (text: string) => stripVTControlCharacters(text).replaceAll("\r", "");

test("an error has the API's own sentences, a hint and an exit code", async () => {
  const { herald } = cli;
  const large = join(system.folder, "large.json");
  await writeFile(large, JSON.stringify({ title: "x".repeat(2_000_000), targets: ["all"] }));
  const readOnly = await cli.json("token", "create", "--name", "reader", "--scope", "read");
  const port = await freePort();
  const cases = [
    [["topic", "list", "--url", `http://127.0.0.1:${port}`, "--retries", "0"], 7, "did not answer", "herald doctor"],
    [["topic", "list", "--token", "hpt_x"], 3, "(401 unauthenticated)", "herald login"],
    [["send", "--title", "x", "--to", "all", "--token", readOnly.token], 3, "(403 forbidden)", "--scope"],
    [["notification", "get", "ntf_x"], 4, "(404 notification-not-found)", "Check the id"],
    [["send", "--file", large], 2, "(413 body-too-large)", "shorten"],
    [["send", "--to", "condition:'"], 2, "notification.targets.0: ", "Correct the fields"],
  ] as const;
  for (const [words, exitCode, sentence, hint] of cases) {
    const result = await herald(...words);
    expect(result, words.join(" ")).toMatchObject({ exitCode, stdout: "" });
    expect(result.stderr).toContain(sentence);
    expect(result.stderr).toContain(hint);
  }

  const dryRun = ["send", "--title", "x", "--to", "all", "--dry-run", "--retries", "0"];
  const few = await system.project("Limited");
  const limited = await quickSignedIn(system, "limited", few);
  expect(await limited.herald(...dryRun)).toMatchObject({ exitCode: 0 });
  const body = { notification: { title: "x", targets: ["all"], dry_run: true } };
  // A project may have 60 in a minute, which may end meanwhile.
  await eventually(async () => {
    await Promise.all(Array.from({ length: 60 }, () => few.call("POST /notifications", { body })));
    const { exitCode, stderr } = await limited.herald(...dryRun);
    expect([exitCode, stderr]).toEqual([6, expect.stringContaining("(429 quota-exceeded)")]);
    expect(stderr).toMatch(/Try again in \d+ s/);
  });

  await system.database.cut();
  try {
    await eventually(async () => {
      const { exitCode, stderr } = await herald("device", "list", "--retries", "0");
      expect([exitCode, stderr]).toEqual([7, expect.stringContaining("(503 ")]);
      expect(stderr).toContain("herald doctor");
    });
  } finally {
    await system.database.heal();
  }
  await eventually(async () => expect(await herald("device", "list")).toMatchObject({ exitCode: 0 }), {
    timeoutMs: 30_000,
  });
});

test("Ctrl-C ends a waiting command with 130, and prints what continues", async () => {
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const watch = cli.terminal(`herald send --title Later --to all --at ${tomorrow} --watch`);
  await eventually(() => expect(read(watch.written.stdout)).toContain("scheduled: 0 of 0"));
  watch.type(ctrlC);
  const watched = await watch.ended();
  expect([watched.exitCode, read(watched.stdout)]).toEqual([130, expect.stringMatching(/ntf_\w+ continues: .*cancel/)]);

  const events = cli.terminal("herald events follow --type io.herald.topic.created.v1");
  await eventually(async () => {
    await cli.herald("topic", "create", `topic-${Date.now()}`);
    expect(read(events.written.stdout)).toContain("io.herald.topic.created.v1");
  });
  events.type(ctrlC);
  const followed = await events.ended();
  expect([followed.exitCode, read(followed.stdout)]).toEqual([
    130,
    expect.stringMatching(/follow --after \S+` resumes here/),
  ]);

  const large = await system.project("Large");
  await seed(system, large, 5_000);
  const { terminal, shell } = await signedIn(system, "large", large);
  const proxy = await faultyProxy(system.gateway, { answers: 300_000 });
  const list = terminal(`herald device list --all --url ${proxy.url} > /dev/null`);
  await eventually(() => expect(list.written.stdout).toContain("rows…"));
  list.type(ctrlC);
  expect(await list.ended()).toMatchObject({ exitCode: 130, stdout: expect.stringContaining("Stopped.") });
  await proxy.stop();

  // head closes the pipe after two lines.
  const head = await shell("set -o pipefail; herald device list --all | head -n 2").ended();
  expect(head).toMatchObject({ exitCode: 0, stderr: "" });
  expect(head.stdout.split("\n")).toHaveLength(3);
  // No process reads its errors.
  expect(await shell("set -o pipefail; herald topic get none 2>&1 | true").ended()).toMatchObject({ exitCode: 4 });
});

test("with the default guard, a webhook that leads to an internal address is refused", async () => {
  const { herald, json } = cli;
  const problems = [
    ["http://127.0.0.1:9/inside", "the endpoint is not https"],
    ["https://169.254.169.254/latest/meta-data/", "the endpoint's host is an address"],
    ["https://[::1]/", "the endpoint's host is an address"],
    ["https://0x7f000001/", "the endpoint's host is an address"],
    ["https://gateway/", "the endpoint's host is not a full name"],
    ["https://hooks.example.com:8443/", "the endpoint's port is not 443"],
  ] as const;
  for (const [url, problem] of problems) {
    const { exitCode, stderr } = await herald("webhook", "create", url);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`webhook.url: ${problem}`)]);
  }
  const { id } = await json("webhook", "create", "https://hooks.example.com/");
  const body = { webhook: { url: "https://localhost/" } };
  expectStatus(await project.call(`PATCH /webhooks/${id}`, { body }), 422);
});

test("the status lists a process that was killed, and a service that does not answer", async () => {
  const status = async () => SystemStatus.parse(expectStatus(await system.admin("GET /status"), 200).body.data);
  const service = async (name: string) => (await status()).services.find((one) => one.name === name);
  const patience = { timeoutMs: 60_000 };
  const killed = await eventually(async () => {
    expect((await service("analytics"))?.state).toBe("ready");
    const found = await service("dispatch");
    expect(found).toMatchObject({ state: "ready", replicas: [{ state: "ready" }] });
    return found?.replicas[0]?.instance;
  }, patience);
  expect(await cli.screen("status")).toMatchObject({
    exitCode: 0,
    text: expect.stringMatching(/^dispatch .* ready /m),
  });

  // The supervisor restarts a killed service as a new instance, but does not touch a paused one.
  await system.services.dispatch.kill();
  const stopped = system.services.analytics.pid();
  process.kill(stopped, "SIGSTOP");
  try {
    await eventually(async () => {
      const found = await service("dispatch");
      expect(found?.replicas.find(({ instance }) => instance === killed)?.state).toBe("not_answering");
      expect([found?.state, found?.replicas.length]).toEqual(["ready", 2]);
      expect((await service("analytics"))?.state).toBe("not_answering");
    }, patience);
    const { exitCode, text } = await cli.screen("status");
    expect([exitCode, text]).toEqual([1, expect.stringMatching(/^analytics .* not_answering /m)]);
    const ready = (await status()).services.filter(({ state }) => state === "ready").map(({ name }) => name);
    expect(ready.toSorted()).toEqual(["dispatch", "gateway", "registry"]);
  } finally {
    process.kill(stopped, "SIGCONT");
  }
  await eventually(async () => expect((await service("analytics"))?.state).toBe("ready"), patience);
});
