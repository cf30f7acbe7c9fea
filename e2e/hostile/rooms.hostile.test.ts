import { type ProjectId, templateLimits } from "@herald/contracts";
import { laterJoin } from "@herald/rules";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { seedDevices } from "../../services/registry/test/seed-devices.ts";
import { inParallel } from "../harness/in-parallel.ts";
import { readMetrics } from "../harness/metrics.ts";
import { apnsToken, type Content, type Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { latencyDuring, maxTicks } from "./latency.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

/** Rooms that all projects share, and a project or a stranger's device that takes as much of them as it can. */
let system: System;
let quiet: Project;
let known: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  quiet = await system.project("Quiet");
  known = (await quiet.register()).device.id;
});
logOnFailure(() => system);

const readDevice = () => quiet.call(`GET /devices/${known}`);

/** Stores and publishes versions of a template, each about as large as a template may be. */
const writer = async (project: Project) => {
  const { token } = await newToken(system, project, ["templates", "read"]);
  const fill = "x".repeat(4_000);
  const sized = (text: string) => ({
    title: text,
    data: Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`part${at}`, `${fill}${at}`])),
  });
  const put = (name: string, text: string) =>
    project.call(`PUT /templates/${name}`, { token, body: { template: sized(text) } });
  const publish = (name: string) => project.call(`POST /templates/${name}/publish`, { token });
  return { token, put, publish };
};

test("reads of a template's versions delay no other project", async ({ task }) => {
  const project = await system.project("Versions");
  const { token, put, publish } = await writer(project);
  const versions = scale(templateLimits.versions, 60);
  for (let at = 1; at <= versions; at++) {
    expectStatus(await put("large", `text ${at}`), 200, 201);
    expectStatus(await publish("large"), 200);
  }
  const reads = scale(2_000, 192);
  const paths = ["/templates/large/versions", "/templates/large?version=50"];
  const wrong: string[] = [];
  let peak = 0;
  const flood = () =>
    inParallel(Array.from({ length: reads }), 64, async (_, at) => {
      const path = paths[at % paths.length] ?? "";
      const { status, body } = await project.call(`GET ${path}`);
      if (status !== 200 && status !== 429 && status !== 503) wrong.push(`${path}: ${status}`);
      if (status === 200 && path.endsWith("versions")) expect(body.pagination.count).toBe(versions);
      if (at % 32 === 0) peak = Math.max(peak, await memoryOf(system, "registry"));
    });
  const beside = await latencyDuring(readDevice, flood, system.services.analytics);
  // One version, which has next to nothing.
  expectStatus(await project.call("PUT /templates/small", { token, body: { template: { title: "x" } } }), 201);
  expectStatus(await publish("small"), 200);
  const listing = (name: string) =>
    cpuFor(system, "registry", reads, () =>
      inParallel(Array.from({ length: reads }), 8, async () =>
        expectStatus(await project.call(`GET /templates/${name}/versions`), 200),
      ),
    );
  const [small, large] = [await listing("small"), await listing("large")];
  show(task, {
    reads,
    "CPU of registry for a list of one small version, ms": small,
    "of all the large ones": large,
    "memory of registry, MB": peak,
    "another's reads meanwhile": beside.answered,
    "p99 ms": beside.p99,
    "answers of another service during one of them": beside.ticks,
  });
  expect(wrong).toEqual([]);
  expect(beside.ticks).toBeLessThan(maxTicks);
  expect(large).toBeLessThan(4 * small);
});

/** The longest that registry's event loop stood since the last reading, in ms. */
const longestStall = async (): Promise<number> => {
  const text = await readMetrics(system.services.registry.metrics);
  return Math.round(Number(/nodejs_eventloop_delay_max_seconds(?:\{[^}]*\})? (\S+)/.exec(text)?.[1]) * 1_000);
};

test("a user with very many devices is read in pages", async ({ task }) => {
  const project = await system.project("Crowd");
  const count = scale(60_000, 10_000);
  const devices = Array.from({ length: count }, () => ({
    token: apnsToken(),
    platform: "ios" as const,
    user: { by: "project" as const, userId: "crowd" },
  }));
  const { client, name } = system.registryDatabase;
  for await (const _ of seedDevices(client.db(name), project.id as ProjectId, devices));
  await project.register({ user_id: "alone" });
  const recipients = ["nobody", "alone", "crowd", "nobody-else"].map((user) => ({
    target: `user:${user}`,
    variables: { n: user },
  }));
  const before = await memoryOf(system, "registry");
  let peak = before;
  let stall = 0;
  let id = "";
  await longestStall();
  const send = async () => {
    ({ id } = await project.send({ title: "{{ n }}", recipients } as unknown as Content));
    await eventually(
      async () => {
        stall = Math.max(stall, await longestStall());
        peak = Math.max(peak, await memoryOf(system, "registry"));
        expect((await project.notification(id)).completed_at).toBeDefined();
      },
      { timeoutMs: scale(300_000, 60_000) },
    );
  };
  const beside = await latencyDuring(readDevice, send, system.services.analytics);
  const { counts } = await project.final(id);
  const { data } = expectStatus(await project.call(`GET /notifications/${id}/recipients`), 200).body;
  show(task, {
    devices: count,
    "registry stood for, ms": stall,
    "memory of registry before and at most, MB": `${before} ${peak}`,
    "another's reads meanwhile": beside.answered,
    "p99 ms": beside.p99,
    "answers of another service during one of them": beside.ticks,
  });
  expect(beside.answered).toBeGreaterThan(0);
  expect(beside.ticks).toBeLessThan(maxTicks);
  // Each device once, and each line once.
  expect(counts).toMatchObject({ devices: count + 1, accepted: count + 1 });
  expect(data).toMatchObject({ recipients: 4, processed: 4, unmatched: 2, complete: true });
  expect((await project.call(`GET /notifications/${id}/recipients/errors`)).body.data).toMatchObject([
    { line: 1 },
    { line: 4 },
  ]);
  const pages = await client.db(name).collection("expansions").find({ notificationId: id }).toArray();
  expect(Math.max(...pages.map(({ devices: read }) => read))).toBeLessThanOrEqual(5_000);
});

test("a replaced activity token gets the state a few times at most", async ({ task }) => {
  const project = await system.project("Tokens");
  const { device, credential = "" } = await project.register();
  const others = await Promise.all(Array.from({ length: 12 }, () => project.register()));
  const activity = {
    ...{ attributes_type: "OrderAttributes", attributes: {}, content_state: { n: 1 } },
    ...{ start: false, targets: [device.id, ...others.map((one) => one.device.id)] },
  };
  expectStatus(await project.call("PUT /activities/order-1", { body: { activity } }), 202);
  const pushes = async (token: string) => (await system.simulators.pushes({ token })).length;
  const putToken = async (one: Pick<(typeof others)[number], "device" | "credential">, token = apnsToken()) => {
    const answer = await request(system.gateway, `PUT /api/v1/devices/${one.device.id}/tokens/activity/order-1`, {
      token: one.credential ?? "",
      body: { token: { token } },
    });
    expectStatus(answer, 204);
    return token;
  };
  // The device of them whose minute ends first: its next token gets the state then.
  for (const token of await Promise.all(others.map((one) => putToken(one))))
    await eventually(async () => expect(await pushes(token)).toBeGreaterThan(0));
  const [soon = others[0]] = others.toSorted(
    (one, other) => laterJoin(one.device.id, new Date()).getTime() - laterJoin(other.device.id, new Date()).getTime(),
  );
  if (!soon) throw new Error("no device is registered");
  const soonToken = await putToken(soon);
  const sends = async () =>
    expectStatus(await system.admin(`GET /projects/${project.id}/limits`), 200).body.data.find(
      (limit: { name: string }) => limit.name === "sends",
    ).used;
  const before = await sends();
  const replaced = 90;
  let last = "";
  // One that is no target gets nothing, and costs nothing.
  const stranger = await project.register();
  for (let at = 0; at < 5; at++) await putToken(stranger);
  expect(await sends()).toBe(before);
  // Before its first token is deleted, which would leave the state nowhere to go.
  const first = await putToken({ device, credential });
  await eventually(async () => expect(await pushes(first)).toBeGreaterThan(0));
  for (let at = 1; at < replaced; at++) {
    last = await putToken({ device, credential });
    // Deleted and stored again it is as new.
    if (at % 3 === 0)
      await request(system.gateway, `DELETE /api/v1/devices/${device.id}/tokens/activity/order-1`, {
        token: credential,
      });
  }
  // Its state follows within a minute, also for the last of the tokens, and the lists show only what the project has sent.
  for (const token of [soonToken, ...(scale(1, 0) ? [last] : [])])
    await eventually(async () => expect(await pushes(token)).toBeGreaterThan(0), { timeoutMs: 90_000 });
  const timeline = async () =>
    expectStatus(await project.call(`GET /devices/${device.id}/notifications?per_page=100&after=`), 200).body.data;
  await eventually(async () => expect((await timeline()).length).toBeGreaterThan(0));
  const sent = (await timeline()).length;
  const listed = await project.notifications();
  const charged = (await sends()) - before;
  show(task, { replaced, "sends to the device": sent, "of them in the project's list": listed.length, charged });
  expect(sent).toBeLessThanOrEqual(5);
  expect(charged).toBeGreaterThan(0);
  expect(charged).toBeLessThanOrEqual(5);
  expect(listed.map(({ activity: of }) => of?.event).filter((event) => event === "join")).toEqual([]);
});
