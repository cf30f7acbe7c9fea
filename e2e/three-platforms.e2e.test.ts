import { type Platform, type Provider, providerOf } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import { deliveryKey } from "./harness/ledger.ts";
import type { Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { deviceOf, payloadOf, wasAccepted } from "./harness/simulators.ts";
import { type System, startSystem, tellOnFailure } from "./harness/system.ts";

const audience = { ios: 4_000, android: 3_000, web: 3_000 } as const satisfies Record<Platform, number>;
const platforms = Object.keys(audience) as Platform[];
const providers: readonly Provider[] = platforms.map((platform) => providerOf[platform]);
const everyone = Object.values(audience).reduce((sum, count) => sum + count, 0);
/** The ack wait, after which a batch of a dead process is given to another, and four rounds of repeats of up to 40 s. */
const recoveryMs = 240_000;

const answerMs = 200;

/** One request in twenty fails, each in one of five ways; the rest takes its time, so that there is a middle to be killed in. */
const failures = (provider: Provider): Rule[] => [
  { provider, share: 0.01, status: provider === "webpush" ? 410 : provider === "fcm" ? 404 : 410 },
  { provider, share: 0.01, status: 503 },
  { provider, share: 0.01, status: 500, delayMs: 100 },
  { provider, share: 0.01, rst: "INTERNAL_ERROR" },
  { provider, share: 0.01, hang: true },
  { provider, delayMs: answerMs },
];

let system: System;
let project: Project;
beforeAll(async () => {
  system = await startSystem({
    env: {
      HERALD_DISPATCH_REQUEST_TIMEOUT: "5s",
      HERALD_DISPATCH_IN_FLIGHT: "100", // five hundred a second and platform, or the broadcast is over before anybody dies
    },
  });
  project = await system.project("Everyone", providers);
  for (const platform of platforms) await seed(system, project, audience[platform], { platform, topics: ["everyone"] });
  await system.simulators.script(providers.flatMap(failures));
});
afterAll(() => system?.stop());
tellOnFailure(() => system);

test("10,000 devices on three platforms, one request in twenty failing, and dispatch killed in the middle", {
  timeout: recoveryMs + 120_000,
}, async () => {
  const { id } = await project.send({ title: "To everyone", targets: ["topic:everyone"] });
  const accepted = async () => (await system.simulators.pushes()).filter(wasAccepted);
  await eventually(
    async () => {
      const seen = new Set((await accepted()).map(({ provider }) => provider));
      expect(seen.size).toBe(3);
      expect((await project.notification(id)).counts.accepted).toBeGreaterThan(500);
    },
    { timeoutMs: 60_000 },
  );
  // What the ledger calls final before the kill is not in flight.
  const final = (await project.deliveries(id)).filter(({ status }) => status !== "pending");
  const died = Date.now();
  await system.services.dispatch.kill();
  expect((await project.notification(id).catch(() => undefined))?.status).not.toBe("completed");

  const report = await checkInvariants(system, project, [{ id, devices: everyone }], { timeoutMs: recoveryMs });
  const { repeated, ...rest } = report;
  expect(rest).toEqual({ ...nothingBroken, deliveries: everyone });

  const done = await project.final(id);
  const { devices, accepted: taken, failed, ...none } = done.counts;
  expect(devices).toBe(everyone);
  expect(taken + failed).toBe(everyone);
  expect(none).toEqual({ expired: 0, cancelled: 0, skipped: 0, pending: 0, opened: 0 });
  expect(Object.keys(done.failures)).toEqual(["unregistered"]);
  expect(final.length).toBeGreaterThan(0);

  const times = new Map<string, number[]>();
  for (const push of await accepted()) {
    const key = deliveryKey(payloadOf(push).notification_id, deviceOf(push));
    times.set(key, [...(times.get(key) ?? []), Date.parse(push.at)]);
  }
  const twice = [...times].filter(([, at]) => at.length > 1);
  expect(twice).toHaveLength(repeated);
  const known = new Set(final.map(({ device_id }) => deliveryKey(id, device_id)));
  expect(twice.filter(([key]) => known.has(key))).toEqual([]);
  // Only what the one that died had sent comes again. Its last answers were on their way for as long as the simulators take.
  expect(twice.filter(([, at]) => Math.min(...at) > died + answerMs + 500)).toEqual([]);
  // What was under way when it died: those it had sent without having written it. Each says that it may have come twice.
  const marked = (await project.deliveries(id)).filter(({ possible_repeat }) => possible_repeat);
  expect(marked.length).toBeGreaterThanOrEqual(repeated);
  expect(marked.length).toBeLessThan(everyone - final.length);
});
