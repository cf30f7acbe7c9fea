import { type DeliveryReason, newDeviceId, pushTokenHash } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addFailures, addTallies, emptyTally, shownCounts } from "./notification-counts.ts";
import type { Outcome } from "./outcome.ts";
import { type BatchRun, type PushStop, pauseCheckMs, type Sendable, settleRow } from "./settle-row.ts";

const startedAt = new Date("2030-01-01T00:00:00Z");
const now = new Date("2030-01-01T00:00:01Z");
const registered = new Date("2029-06-01T00:00:00Z").getTime();
const after = (ms: number) => new Date(now.getTime() + ms);

const device = (change: Partial<Sendable> = {}): Sendable => ({
  id: newDeviceId(startedAt),
  token: "abc",
  tokenAt: registered,
  attempts: 0,
  repeat: false,
  ...change,
});

const settle = (outcomes: (Outcome | undefined)[], change: Partial<BatchRun> = {}) =>
  settleRow({
    devices: outcomes.map(() => device()),
    outcomes,
    startedAt,
    now,
    expiresAt: after(86_400_000),
    cancelled: false,
    keepDevices: false,
    random: 0.5,
    ...change,
  });

const only = (outcome: Outcome | undefined, change: Partial<BatchRun> = {}) => {
  const settlement = settle([outcome], change);
  return { ...settlement, result: settlement.results[settlement.resultOf[0] ?? 0] };
};

const deferred: Outcome = { kind: "deferred", providerReason: "503 ServiceUnavailable" };
const unknown: Outcome = { kind: "unknown", providerReason: "no answer" };
const misconfigured: Outcome = { kind: "misconfigured", providerReason: "403 InvalidProviderToken" };
const dead = (at?: Date): Outcome => ({ kind: "unregistered", at, providerReason: "410 Unregistered" });

describe("an outcome", () => {
  test("accepted is final", () => {
    expect(only({ kind: "accepted" }).result).toEqual({ status: "accepted", attempts: 1, possibleRepeat: false });
  });

  test("rejected is final and does not deactivate the device", () => {
    const { result, failures, unregistered } = only({
      kind: "rejected",
      reason: "payload-too-large",
      providerReason: "413 PayloadTooLarge",
    });
    expect(result).toMatchObject({
      status: "failed",
      reason: "payload-too-large",
      providerReason: "413 PayloadTooLarge",
    });
    expect(failures).toEqual({ "payload-too-large": 1 });
    expect(unregistered).toEqual([]);
  });

  test("that Herald refused itself uses no attempt", () => {
    const refused = { kind: "rejected", reason: "render-failed", providerReason: "title: no", notSent: true } as const;
    expect(only(refused).result).toMatchObject({ status: "failed", attempts: 0, possibleRepeat: false });
    const waited = { devices: [device({ attempts: 2, repeat: true })] };
    expect(only(refused, waited).result).toMatchObject({ status: "failed", attempts: 2, possibleRepeat: true });
  });

  test("unregistered deactivates the registration that the push was sent to", () => {
    const at = new Date(registered + 1);
    const { result, unregistered } = only(dead(at));
    expect(result).toMatchObject({ status: "failed", reason: "unregistered" });
    expect(unregistered).toMatchObject([{ tokenHash: pushTokenHash("abc"), at }]);
  });

  test("unregistered without a time is dated by the start of the attempt", () => {
    expect(only(dead()).unregistered).toMatchObject([{ at: startedAt }]);
  });

  test.each([
    ["an older refusal", dead(new Date(registered - 1)), {}],
    ["a refusal of the same moment", dead(new Date(registered)), {}],
    ["a registration during the attempt", dead(), { devices: [device({ tokenAt: startedAt.getTime() + 1 })] }],
    ["a spike", dead(new Date(registered + 1)), { keepDevices: true }],
  ])("unregistered keeps the device: %s", (_, outcome, change) => {
    const { result, unregistered } = only(outcome, change);
    expect(result).toMatchObject({ status: "failed", reason: "unregistered-kept" });
    expect(unregistered).toEqual([]);
  });

  const rejected = (reason: DeliveryReason, badToken?: true): Outcome => ({
    kind: "rejected",
    reason,
    providerReason: "said so",
    badToken,
  });

  test.each([
    ["token-invalid", true],
    ["endpoint-forbidden", true],
    ["token-invalid", undefined],
    ["endpoint-forbidden", undefined],
    ["topic-mismatch", undefined],
    ["environment-mismatch", undefined],
    ["vapid-key-retired", undefined],
    ["payload-invalid", undefined],
  ] as const)("%s, if it is about the token for ever (%s), retires the device", (reason, badToken) => {
    const { result, unregistered } = only(rejected(reason, badToken));
    expect(result).toMatchObject({ status: "failed", reason });
    expect(unregistered).toEqual(
      badToken ? [{ deviceId: expect.any(String), tokenHash: pushTokenHash("abc"), at: startedAt, reason }] : [],
    );
  });

  test.each([
    ["a registration during the attempt", { devices: [device({ tokenAt: startedAt.getTime() + 1 })] }],
    ["a spike", { keepDevices: true }],
    ["the token of a Live Activity", { devices: [device({ liveToken: "live" })] }],
  ])("a token that is wrong for ever keeps its device: %s", (_, change) => {
    const { result, unregistered } = only(rejected("token-invalid", true), change);
    expect(result).toMatchObject({ status: "failed", reason: "token-invalid" });
    expect(unregistered).toEqual([]);
  });

  test("deferred waits in a child batch, with one attempt used", () => {
    const { result, waiting, tally } = only({ ...deferred, retryAfterMs: 30_000 });
    expect(result).toMatchObject({ status: "deferred", attempts: 1, possibleRepeat: false });
    expect(waiting).toMatchObject({
      devices: [{ attempts: 1, repeat: false }],
      notBefore: after(35_000),
      paused: false,
    });
    expect(tally).toEqual(emptyTally);
  });

  test("unknown waits in a child batch, marked as a possible repeat", () => {
    const { result, waiting } = only(unknown);
    expect(result).toMatchObject({ status: "deferred", possibleRepeat: true });
    expect(waiting?.devices).toMatchObject([{ attempts: 1, repeat: true }]);
  });

  test.each([deferred, unknown])("the eighth attempt is the last: $kind", (outcome) => {
    const { result, waiting } = only(outcome, { devices: [device({ attempts: 7 })] });
    expect(result).toMatchObject({ status: "failed", reason: "attempts-exhausted", attempts: 8 });
    expect(result?.possibleRepeat).toBe(outcome.kind === "unknown");
    expect(waiting).toBeUndefined();
  });

  test.each([deferred, unknown])(
    "without a count of attempts, only the end of its time is the last: $kind",
    (outcome) => {
      const devices = [device({ attempts: 60 })];
      const { result, waiting } = only(outcome, { devices, untilExpiry: true });
      expect(result).toMatchObject({ status: "deferred", attempts: 61 });
      expect(waiting?.dueAt.getTime()).toBeLessThanOrEqual(after(600_500).getTime());
      const late = only(outcome, { devices, untilExpiry: true, expiresAt: after(100) });
      expect(late.result).toMatchObject({ status: "expired", reason: "expired" });
      expect(late.waiting).toBeUndefined();
    },
  );

  test("what the provider did not process uses no attempt, and is tried until the notification expires", () => {
    const unprocessed: Outcome = { ...deferred, unprocessed: true };
    let devices: readonly Sendable[] = [device({ attempts: 7 })];
    let tries = 0;
    let at = now.getTime();
    const expiresAt = after(28 * 86_400_000);
    for (;;) {
      const { result, waiting } = only(unprocessed, { devices, now: new Date(at), expiresAt });
      if (!waiting) {
        expect(result).toMatchObject({ status: "expired", attempts: 7, possibleRepeat: false });
        break;
      }
      expect(result).toMatchObject({ status: "deferred", attempts: 7, unprocessed: true });
      expect(waiting.devices).toMatchObject([{ attempts: 7, unprocessed: ++tries, repeat: false }]);
      devices = waiting.devices;
      at = waiting.dueAt.getTime();
    }
    expect(tries).toBeGreaterThan(100);
    expect(tries).toBeLessThan(150);
    // The next try that the provider may have processed is the eighth attempt.
    expect(only(deferred, { devices }).result).toMatchObject({ reason: "attempts-exhausted", attempts: 8 });
  });

  test("each device waits by itself after a failed try, without delaying those of its row that only waited", () => {
    const devices = [device(), device({ attempts: 5 }), device()];
    const blocked = new Map([[2, { until: after(1_000) }]]);
    const { waiting } = settle([deferred, deferred, undefined], { devices, blocked });
    expect(waiting?.devices.map(({ retryAt }) => retryAt)).toEqual([
      after(5_500).getTime(),
      after(160_500).getTime(),
      undefined,
    ]);
    expect(waiting?.dueAt).toEqual(after(1_000));
  });

  test("misconfigured uses no attempt and waits for settings", () => {
    const { waiting } = only(misconfigured);
    expect(waiting).toMatchObject({
      devices: [{ attempts: 0 }],
      paused: true,
      notBefore: now,
      dueAt: after(pauseCheckMs),
    });
  });

  test.each([
    [{ ...deferred, retryAfterMs: 60_000 } as Outcome, "expired"],
    [misconfigured, "provider-misconfigured"],
  ])("what cannot be sent before the end is expired: $kind", (outcome, reason) => {
    const expiresAt = outcome.kind === "misconfigured" ? now : after(60_000);
    const { result, waiting, tally } = only(outcome, { expiresAt });
    expect(result).toMatchObject({ status: "expired", reason });
    expect(waiting).toBeUndefined();
    expect(tally).toMatchObject({ devices: 1, expired: 1 });
  });

  test.each([deferred, unknown, misconfigured])("nothing waits for a cancelled notification: $kind", (outcome) => {
    const { result, waiting } = only(outcome, { cancelled: true });
    expect(result).toMatchObject({ status: "cancelled", reason: "cancelled" });
    expect(waiting).toBeUndefined();
  });

  test("an earlier attempt that may have arrived stays marked", () => {
    expect(only({ kind: "accepted" }, { devices: [device({ repeat: true, attempts: 2 })] }).result).toEqual({
      status: "accepted",
      attempts: 3,
      possibleRepeat: true,
    });
  });
});

describe("a device that was not sent to", () => {
  test.each<[PushStop, string, string]>([
    [{ kind: "cancelled" }, "cancelled", "cancelled"],
    [{ kind: "expired" }, "expired", "expired"],
    [{ kind: "expired", during: "settings" }, "expired", "provider-misconfigured"],
    [{ kind: "expired", during: "held" }, "expired", "paused"],
    [{ kind: "abandoned" }, "failed", "internal"],
    [{ kind: "not-configured" }, "failed", "provider-not-configured"],
  ])("%o", (stop, status, reason) => {
    expect(only(undefined, { stop }).result).toEqual({ status, reason, attempts: 0, possibleRepeat: false });
  });

  test("waits while the provider is paused", () => {
    expect(only(undefined, { stop: { kind: "paused" } }).waiting).toMatchObject({ paused: true, notBefore: now });
  });

  test("has the failure of its server as the reason, if that is why it is blocked", () => {
    const until = after(30_000);
    const { result } = only(undefined, { blocked: new Map([[0, { until, providerReason: "cannot reach" }]]) });
    expect(result).toMatchObject({ status: "deferred", attempts: 0, providerReason: "cannot reach", blocked: true });
  });

  test("waits until its server may be sent to again, which is no attempt", () => {
    const until = after(30_000);
    expect(only(undefined, { blocked: new Map([[0, { until }]]) }).waiting).toMatchObject({
      paused: false,
      notBefore: until,
      dueAt: until,
      devices: [{ attempts: 0, repeat: false }],
    });
  });

  test("is expired when that would be too late, and the others go on", () => {
    const blocked = new Map([
      [0, { until: after(30_000) }],
      [1, { until: after(10_000) }],
    ]);
    const { results, resultOf, waiting } = settle([undefined, undefined], { blocked, expiresAt: after(20_000) });
    expect([...resultOf].map((index) => results[index]?.status)).toEqual(["expired", "deferred"]);
    expect(waiting).toMatchObject({ notBefore: after(10_000), devices: [{}] });
  });

  test.each<PushStop>([{ kind: "cancelled" }, { kind: "expired" }, { kind: "not-configured" }])(
    "waits for nothing when the batch was stopped for good: $kind",
    (stop) => {
      const { waiting, tally } = only(undefined, { blocked: new Map([[0, { until: after(10) }]]), stop });
      expect(waiting).toBeUndefined();
      expect(tally.devices).toBe(1);
    },
  );
});

test("a batch is due as soon as one of its devices is, and each device keeps its own time", () => {
  const { waiting } = settle([{ ...deferred, retryAfterMs: 3_600_000 }, deferred, undefined], {
    blocked: new Map([[2, { until: after(60_000) }]]),
    random: 0,
  });
  expect(waiting?.notBefore).toEqual(after(500));
  expect(waiting?.devices.map(({ notBefore }) => notBefore)).toEqual([
    after(3_600_000).getTime(),
    undefined,
    undefined,
  ]);
  // A Retry-After holds for one attempt only.
  expect(settle([deferred], { devices: waiting?.devices.slice(0, 1) ?? [] }).waiting?.devices).toEqual([
    expect.not.objectContaining({ notBefore: expect.anything() }),
  ]);
});

test("distinct results are stored once", () => {
  const { results, resultOf } = settle([{ kind: "accepted" }, deferred, { kind: "accepted" }, deferred]);
  expect(results).toHaveLength(2);
  expect([...resultOf]).toEqual([0, 1, 0, 1]);
});

test("different provider reasons each time do not overflow the table", () => {
  const outcomes = Array.from(
    { length: 500 },
    (_, index): Outcome => ({
      kind: "rejected",
      reason: "provider-rejected",
      providerReason: `strange ${index}`,
    }),
  );
  const { results, tally } = settle(outcomes);
  expect(results.length).toBeLessThan(256);
  expect(tally.failed).toBe(500);
});

const anyOutcome: fc.Arbitrary<Outcome | undefined> = fc.oneof(
  fc.constant<Outcome>({ kind: "accepted" }),
  fc.constantFrom<Outcome>(dead(), dead(new Date(registered - 1)), misconfigured, unknown, deferred),
  fc.integer({ min: 0, max: 2_000_000 }).map((retryAfterMs): Outcome => ({ ...deferred, retryAfterMs })),
  fc.constant<Outcome>({ kind: "rejected", reason: "payload-invalid", providerReason: "400" }),
  fc.constant(undefined),
);
const anyStop = fc.constantFrom<PushStop>(
  { kind: "cancelled" },
  { kind: "expired" },
  { kind: "abandoned" },
  { kind: "not-configured" },
  { kind: "paused" },
);

test("no device is lost or counted twice, through any chain of rows", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(anyOutcome, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 12 }),
      anyStop,
      fc.boolean(),
      fc.integer({ min: 0, max: 3_600_000 }),
      fc.array(fc.tuple(fc.nat(19), fc.integer({ min: 0, max: 7_200_000 }))),
      (rounds, stop, cancelled, ttl, holds) => {
        const blocked = new Map(holds.map(([index, ms]) => [index, { until: after(ms) }]));
        const all = Array.from({ length: 20 }, () => device());
        let devices: readonly Sendable[] = all;
        let total = emptyTally;
        let failures = {};
        for (const outcomes of rounds) {
          if (devices.length === 0) break;
          const settlement = settle([], {
            devices,
            outcomes: devices.map((_, index) => outcomes[index % outcomes.length]),
            stop,
            blocked,
            cancelled,
            expiresAt: after(ttl),
          });
          total = addTallies(total, settlement.tally);
          failures = addFailures(failures, settlement.failures);
          devices = settlement.waiting?.devices ?? [];
          if (settlement.waiting) {
            expect(settlement.waiting.dueAt.getTime()).toBeLessThanOrEqual(after(ttl).getTime());
            expect(settlement.waiting.notBefore >= now).toBe(true);
          }
          // Waiting devices have a row in the ledger too, with no result.
          const counts = shownCounts({ ...total, devices: total.devices + devices.length });
          expect(counts.devices).toBe(all.length);
          expect(counts.pending).toBe(devices.length);
        }
        const counted = Object.values<number>(failures).reduce((sum, count) => sum + count, 0);
        expect(counted).toBe(total.failed);
      },
    ),
  );
});

test("accepted devices that were asked for a receipt are counted", () => {
  const accepted: Outcome = { kind: "accepted" };
  const devices = [device(), device(), device({ attempts: 1, repeat: true })];
  const [first, , third] = devices;
  const { results, resultOf, tally } = settle([accepted, accepted, accepted], {
    devices,
    asked: ({ id }) => id === first?.id || id === third?.id,
  });
  expect([...resultOf].map((at) => results[at]?.asked ?? false)).toEqual([true, false, true]);
  expect(tally).toMatchObject({ accepted: 3, asked: 2 });
  expect(shownCounts(addTallies(tally, tally))).toMatchObject({ accepted: 6, receipts_asked: 4 });
  const refused = settle([{ kind: "rejected", reason: "payload-too-large", providerReason: "413" }], {
    asked: () => true,
  });
  expect(refused.tally).not.toHaveProperty("asked");
});
