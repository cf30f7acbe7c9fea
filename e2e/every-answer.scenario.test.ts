import { type Platform, type Provider, providerOf } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, describe, expect } from "vitest";
import { aboutOneDevice, platforms, refusals, shortThrottles } from "./harness/answer-cases.ts";
import { inParallel } from "./harness/in-parallel.ts";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import type { Project } from "./harness/project.ts";
import { serviceAccount } from "./harness/providers.ts";
import { newAddress, seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { meetThrottles, prefixOf, throttleKept, throttleRules, withRepeat } from "./harness/throttles.ts";

/** Few enough for a busy machine. All of them are sent before the test waits for the first. */
const atATime = 3;

const mailOf = (index: number) => `${prefixOf("b", index)}@herald-e2e.iam.gserviceaccount.com`;

const rules: Rule[] = [
  ...aboutOneDevice.map(({ platform, rule }, index) => ({
    ...rule,
    provider: providerOf[platform],
    tokenPrefix: prefixOf("a", index),
  })),
  ...refusals.map(({ platform, rule, at }, index) => ({
    ...rule,
    provider: at ?? providerOf[platform],
    tokenPrefix: at ? mailOf(index) : prefixOf("b", index),
    times: 2, // the second one confirms the first
  })),
  ...throttleRules(shortThrottles),
];

let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  await system.simulators.script(rules);
});
afterAll(() => system.simulators.script([]));
logOnFailure(() => system);

const projectFor = (platform: Platform, change?: Record<string, unknown>) =>
  system.project("One answer", []).then(async (project) => {
    await system.putProvider(project, providerOf[platform], change);
    return project;
  });
const registered = async (project: Project, platform: Platform, prefix?: string) =>
  (await project.register({ platform, ...(await newAddress(system.simulators, platform, prefix)) })).device;
const pushesOf = async (...ids: readonly string[]) =>
  (await system.simulators.pushes()).filter((push) => ids.includes(payloadOf(push)?.notification_id));
const name = ({ platform, rule }: { platform: Platform; rule: object }) => `${platform} ${JSON.stringify(rule)}`;

describe.concurrent("every answer of every provider", () => {
  test("about one device or one message", { timeout: 300_000 }, async ({ expect }) => {
    const sent = await inParallel(aboutOneDevice, atATime, async (one, index) => {
      const project = await projectFor(one.platform);
      const device = await registered(project, one.platform, prefixOf("a", index));
      const { id } = await project.send({ title: "Hello", targets: [device.id] });
      return { one, project, device, id };
    });
    const became = await inParallel(sent, atATime, async ({ one, project, device, id }) => {
      await project.final(id, withRepeat);
      const [row] = await project.deliveries(id);
      const state = async () => expectStatus(await project.call(`GET /devices/${device.id}`), 200).body.data.status;
      await eventually(async () => expect(await state()).toBe(one.device)).catch(() => {});
      const { status, reason, attempts, possible_repeat } = row ?? {};
      return [
        name(one),
        {
          status,
          ...(reason && { reason }),
          attempts,
          possible_repeat,
          requests: (await pushesOf(id)).length,
          device: await state(),
        },
      ];
    });
    const expected = aboutOneDevice.map((one) => {
      const { reason, ...becomes } = one.becomes;
      return [name(one), { ...becomes, ...(reason && { reason }), requests: one.requests, device: one.device }];
    });
    expect(became).toEqual(expected);
  });

  test("about the project's credential: the provider pauses, keeps what waits, and continues with new settings", {
    timeout: 300_000,
  }, async ({ expect }) => {
    const became = await inParallel(refusals, atATime, async ({ platform, rule, at }, index) => {
      const provider = providerOf[platform];
      const project = await projectFor(platform, at && { service_account: serviceAccount(mailOf(index)) });
      const device = await registered(project, platform, prefixOf("b", index));
      const { id } = await project.send({ title: "Hello", targets: [device.id] });
      const waits = await eventually(async () => {
        const { body } = expectStatus(await system.admin(`GET /projects/${project.id}/providers/${provider}`), 200);
        expect(body.data.status).toBe("paused");
        return body.data.paused_reason;
      }).catch(() => "never paused");
      const { counts } = await project.notification(id);
      await system.putProvider(project, provider);
      const done = await project.final(id, withRepeat).catch((error: Error) => error.message);
      const [row] = await project.deliveries(id);
      return [
        name({ platform, rule }),
        {
          paused: waits !== "never paused",
          pending: counts.pending,
          completed: typeof done === "object" && done.status,
          status: row?.status,
          attempts: row?.attempts,
          possible_repeat: row?.possible_repeat,
        },
      ];
    });
    const well = {
      paused: true,
      pending: 1,
      completed: "completed",
      status: "accepted",
      attempts: 1,
      possible_repeat: false,
    };
    expect(became).toEqual(refusals.map((one) => [name(one), well]));
  });

  test("429: no request of the project to that provider before Retry-After", { timeout: 120_000 }, async ({
    expect,
  }) => {
    const became = await meetThrottles(system, shortThrottles);
    expect(became).toEqual(
      shortThrottles.map(({ platform, seconds }) => ({ about: `${platform} ${seconds} s`, kept: throttleKept })),
    );
  });
});

test("GOAWAY every 50 streams after a first one of a single stream, on every platform: each device gets one push", {
  timeout: 300_000,
}, async () => {
  const providers: Provider[] = platforms.map((platform) => providerOf[platform]);
  await system.simulators.script(
    providers.flatMap((provider) => [
      { provider, goaway: 50 },
      { provider, oneStreamStart: true },
    ]),
  );
  const project = await system.project("Goodbyes", providers);
  const audience = { ios: 200, android: 110, web: 110 };
  for (const platform of platforms) await seed(system, project, audience[platform], { platform, topics: ["everyone"] });
  const { id } = await project.send({ title: "Hello", targets: ["everyone"] });
  const devices = Object.values(audience).reduce((sum, count) => sum + count, 0);
  expect(await checkInvariants(system, project, [{ id, devices }])).toMatchObject({
    ...nothingBroken,
    repeated: 0,
    deliveries: devices,
  });
  expect((await project.final(id)).counts).toMatchObject({ accepted: devices });
  expect((await project.deliveries(id)).filter(({ possible_repeat }) => possible_repeat)).toEqual([]);
});
