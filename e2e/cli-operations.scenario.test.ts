import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort } from "@herald/provision";
import { eventually, operateBroker } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { type QuickCommandLine, quickSignedIn } from "./harness/quick-command-line.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let cli: QuickCommandLine;

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Command line");
  cli = await quickSignedIn(system, "operator", project);
});
logOnFailure(() => system);

test("webhooks are created, pinged, disabled, recovered and deleted", async () => {
  const { json, herald } = cli;
  const receiver = createServer((_, response) => response.writeHead(500).end("not today"));
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  try {
    const { id, secret } = await json(
      "webhook",
      "create",
      url,
      "--event",
      "io.herald.topic.created.v1",
      "--description",
      "Tests",
    );
    expect(secret).toMatch(/^whsec_/);
    expect((await json("webhook", "rotate-secret", id)).secret).not.toBe(secret);
    const ping = await json("webhook", "ping", id);
    await eventually(async () =>
      expect(await json("webhook", "message", id, ping.id)).toMatchObject({ status: "failed" }),
    );
    expect((await herald("webhook", "message", id, ping.id)).stdout).toContain("not today");
    expect(await json("webhook", "messages", id, "--status", "failed")).toHaveLength(1);
    expect(await json("webhook", "resend", id, ping.id)).toMatchObject({ id: ping.id });
    expect(await json("webhook", "disable", id)).toMatchObject({ enabled: false });
    expect((await herald("webhook", "list")).stdout).toContain("disabled: requested");
    expect((await herald("doctor")).stdout).toContain("is disabled: requested");
    expect(await herald("webhook", "ping", id)).toMatchObject({ exitCode: 5 });
    expect(await json("webhook", "enable", id)).toMatchObject({ enabled: true });
    const since = new Date(Date.now() - 60_000).toISOString();
    expect((await json("webhook", "recover", id, "--since", since)).messages).toBeGreaterThanOrEqual(0);
    expect(await json("webhook", "get", id)).toMatchObject({ events: ["io.herald.topic.created.v1"] });
    expect(await herald("webhook", "delete", id, "--yes")).toMatchObject({ exitCode: 0 });
    expect(await json("webhook", "list")).toEqual([]);
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
});

test("dead letters are listed, shown and replayed", async () => {
  const { json, herald } = cli;
  const subject = `push.cmd.v1.dispatch.send.${project.id}.x`;
  const letters = async (...words: string[]) =>
    (await json("dead-letters", "list", ...words)).filter((one: { subject: string }) => one.subject === subject);
  const broker = await operateBroker(system.broker);
  await broker.publish(subject, "no JSON").finally(() => broker.close());
  const [{ id, durable }] = await eventually(async () => {
    const found = await letters();
    expect(found).toHaveLength(1);
    return found;
  });
  expect(await letters("--durable", durable)).toHaveLength(1);
  expect(await json("dead-letters", "get", id)).toMatchObject({ id, durable });
  expect(await herald("dead-letters", "replay")).toMatchObject({ exitCode: 2 });
  expect(await json("dead-letters", "replay", id)).toMatchObject([{ id, status: "replayed" }]);
  const next = await eventually(async () => {
    const found = await letters();
    expect(found).toHaveLength(2);
    return found.find((one: { id: string }) => one.id !== id).id;
  });
  // Replays those of other files too, which were never replayed.
  const again = await json("dead-letters", "replay", "--durable", durable);
  expect(again).toContainEqual(expect.objectContaining({ id: next, status: "replayed" }));
});

const healthyChecks = [
  ...["url", "clock", "readiness", "broker", "database", "gateway", "registry", "dispatch", "analytics"],
  ...["token", "apns", "fcm", "webpush"],
];

test("the doctor finds no problem in a healthy system, and names each problem of another", async () => {
  const healthy = await quickSignedIn(system, "healthy", await system.project("Healthy", ["apns", "fcm", "webpush"]));
  // Each service reports every few seconds, and later on a busy machine.
  await eventually(async () => {
    const found: { check: string; state: string }[] = JSON.parse((await healthy.herald("doctor", "--json")).stdout);
    const states = Object.fromEntries(found.map(({ check, state }) => [check, state]));
    for (const check of healthyChecks) expect([check, states[check]]).toEqual([check, "ok"]);
    const status = await healthy.json("status");
    expect(status).toMatchObject({ broker: { available: true }, dead_letters: expect.any(Number) });
    for (const { name, state, replicas } of status.services)
      expect([name, state, replicas.length]).toEqual([name, "ready", 1]);
  });
  expect((await healthy.herald("status")).stdout).toContain("PUSH_EVENTS");
  const port = await freePort();
  for (const [words, sentence] of [
    [["--url", `http://127.0.0.1:${port}`], "does not answer"],
    [["--url", system.simulators.url], "not Herald's gateway"],
    [["--token", "hpt_x"], "herald token create"],
    [["--admin-token", "x"], "HERALD_ADMIN_TOKEN"],
    [["--project", "prj_x"], "Check --project"],
  ] as const) {
    const { exitCode, stdout } = await healthy.herald("doctor", ...words);
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining(sentence)]);
  }
});
