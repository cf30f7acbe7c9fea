import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { freePort } from "@herald/local-stack";
import { eventually, faultyProxy } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CommandLine, signedIn } from "./harness/command-line.ts";
import { seed } from "./harness/seed.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";

let system: System;
let cli: CommandLine;
beforeAll(async () => {
  system = await startSystem();
  cli = await signedIn(system, "person", await system.project("Bad days"));
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
  const project = await system.project("Limited");
  const limited = await signedIn(system, "limited", project);
  expect(await limited.herald(...dryRun)).toMatchObject({ exitCode: 0 });
  const body = { notification: { title: "x", targets: ["all"], dry_run: true } };
  // A project may have 60 in a minute.
  await Promise.all(Array.from({ length: 59 }, () => project.call("POST /notifications", { body })));
  const second = await limited.herald(...dryRun);
  expect([second.exitCode, second.stderr]).toEqual([6, expect.stringContaining("(429 quota-exceeded)")]);
  expect(second.stderr).toMatch(/Try again in \d+ s/);

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
