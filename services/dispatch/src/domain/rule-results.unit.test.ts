import type { DeclaredKind, RulesRecord } from "@herald/contracts";
import { askedRulesOf, quietUntil, rulesOfSend, unionUntil } from "@herald/rules";
import { describe, expect, test } from "vitest";
import { applyRuleResults, createEvaluateDevice, packRuleResults, type RuleResult } from "./rule-results.ts";
import { noneSkipped, type Sendable } from "./settle-row.ts";

const offers: DeclaredKind = {
  kind: "offers",
  title: "Offers",
  on_by_default: true,
  critical: false,
  frequency_cap: { count: 2, per: "day" },
};
const night = { from: "22:00", to: "07:00", mode: "delay" as const };
const record = (change: Partial<RulesRecord> = {}): RulesRecord => ({
  projectId: "prj_00000000000000000000000000",
  kinds: [offers],
  ...change,
});
const device = (change: Partial<Sendable> = {}): Sendable => ({
  ...{ id: "dev_00000000000000000000000000", token: "", tokenAt: 0, attempts: 0, repeat: false, ...change },
});
const at = (time: string) => new Date(`2030-01-15T${time}:00Z`);
const resultOf = (
  rules: ReturnType<typeof rulesOfSend>,
  one: Sendable,
  now: Date,
  expiresAt = at("23:59"),
  devices = 1,
) => rules && createEvaluateDevice(rules, { now, expiresAt, devices })(one);

describe("the rules of a send", () => {
  test("are none without a record, for a kind that is not declared, and for a critical one", () => {
    expect(rulesOfSend(undefined, { kind: "offers" })).toBeUndefined();
    expect(rulesOfSend(record(), {})).toBeUndefined();
    expect(rulesOfSend(record(), { kind: "constructor" })).toBeUndefined();
    const critical = record({ kinds: [{ ...offers, critical: true }], quietHours: night, ownHours: true });
    expect(rulesOfSend(critical, { kind: "offers" })).toBeUndefined();
  });

  test("ask registry only for what they need", () => {
    expect(askedRulesOf(rulesOfSend(record(), { kind: "offers" }) as never)).toEqual({
      kind: { name: "offers", on: true },
    });
    const hours = rulesOfSend(record({ quietHours: night }), {});
    expect(askedRulesOf(hours as never)).toEqual({ hours: true });
  });

  test("a silent send can be switched off, and has neither hours nor a cap", () => {
    const rules = rulesOfSend(record({ quietHours: night, ownHours: true }), { kind: "offers", silent: true });
    expect(rules).toEqual({ kind: offers, ownHours: false, zone: "UTC" });
  });

  test("the hours of a kind replace the project's, and null is none", () => {
    const hours = { ...night, mode: "skip" as const };
    const own = record({ kinds: [{ ...offers, quiet_hours: hours }], quietHours: night });
    expect(rulesOfSend(own, { kind: "offers" })?.hours).toEqual(hours);
    const none = record({ kinds: [{ ...offers, quiet_hours: null }], quietHours: night });
    expect(rulesOfSend(none, { kind: "offers" })?.hours).toBeUndefined();
  });
});

describe("a device", () => {
  test("that has it switched off is muted, also in quiet hours", () => {
    const rules = rulesOfSend(record({ quietHours: night }), { kind: "offers" });
    expect(resultOf(rules, device({ off: true }), at("23:00"))).toEqual({ reason: "muted" });
  });

  test("waits until quiet hours end where it is, and is skipped if the send expires before", () => {
    const rules = rulesOfSend(record({ quietHours: night, timeZone: "Europe/Berlin" }), {});
    expect(resultOf(rules, device(), at("05:30"))).toEqual({ reason: "quiet-hours", until: at("06:00") });
    expect(resultOf(rules, device({ zone: "Asia/Tokyo" }), at("05:30"))).toBeUndefined();
    expect(resultOf(rules, device(), at("05:30"), at("06:00"))).toEqual({ reason: "quiet-hours", end: at("06:00") });
  });

  test("is skipped in hours that say so", () => {
    const rules = rulesOfSend(record({ quietHours: { ...night, mode: "skip" } }), {});
    expect(resultOf(rules, device(), at("22:00"))).toEqual({ reason: "quiet-hours" });
    expect(resultOf(rules, device(), at("07:00"))).toBeUndefined();
  });

  test("waits for its user's hours, too; many share the full hour", () => {
    const rules = rulesOfSend(record({ ownHours: true }), {});
    const own = device({ quiet: "12:00-13:30" });
    expect(resultOf(rules, own, at("12:15"))).toEqual({ reason: "quiet-hours", until: at("13:30") });
    expect(resultOf(rules, own, at("12:15"), at("23:59"), 101)).toEqual({ reason: "quiet-hours", until: at("14:00") });
    const both = rulesOfSend(record({ quietHours: { ...night, to: "12:00" }, ownHours: true }), {});
    expect(resultOf(both, own, at("11:00"))).toEqual({ reason: "quiet-hours", until: at("13:30") });
  });
});

describe("quiet hours", () => {
  test.each([
    ["22:00", "07:00", "2030-01-15T21:59:59Z", undefined],
    ["22:00", "07:00", "2030-01-15T22:00:00Z", "2030-01-16T07:00:00Z"],
    ["22:00", "07:00", "2030-01-16T06:59:59Z", "2030-01-16T07:00:00Z"],
    ["22:00", "07:00", "2030-01-16T07:00:00Z", undefined],
    ["00:00", "00:01", "2028-02-29T00:00:30Z", "2028-02-29T00:01:00Z"],
    ["23:00", "01:00", "2028-02-28T23:30:00Z", "2028-02-29T01:00:00Z"],
  ])("from %s to %s at %s", (from, to, now, until) => {
    expect(quietUntil({ from, to }, "UTC", new Date(now))).toEqual(until && new Date(until));
  });

  test.each([
    // Clocks skip 02:00 to 03:00.
    ["Europe/Berlin", "01:00", "02:30", "2030-03-31T00:30:00Z", "2030-03-31T01:00:00Z"],
    // Clocks show 02:00 to 03:00 twice: the second time, too.
    ["Europe/Berlin", "02:00", "02:45", "2030-10-27T00:30:00Z", "2030-10-27T00:45:00Z"],
    ["Europe/Berlin", "02:00", "02:45", "2030-10-27T01:30:00Z", "2030-10-27T01:45:00Z"],
    // Half an hour.
    ["Australia/Lord_Howe", "01:00", "02:15", "2030-10-05T15:00:00Z", "2030-10-05T15:30:00Z"],
    ["Pacific/Kiritimati", "22:00", "07:00", "2030-01-15T08:00:00Z", "2030-01-15T17:00:00Z"],
    ["Etc/GMT+12", "22:00", "07:00", "2030-01-15T18:59:00Z", "2030-01-15T19:00:00Z"],
  ])("in %s from %s to %s at %s", (zone, from, to, now, until) => {
    expect(quietUntil({ from, to }, zone, new Date(now))).toEqual(new Date(until));
  });

  test("several that cover the whole day end some time", () => {
    const all = [
      { from: "07:00", to: "22:00" },
      { from: "22:00", to: "07:00" },
    ];
    expect(unionUntil(all, "UTC", at("08:00"))?.getTime()).toBeLessThan(at("08:00").getTime() + 3 * 86_400_000);
  });
});

test("results are packed to a byte for each device, and applied", () => {
  const until = at("12:00");
  const results: (RuleResult | undefined)[] = [
    undefined,
    { reason: "muted" },
    { reason: "quiet-hours", until },
    undefined,
  ];
  expect(packRuleResults([undefined, undefined])).toBeUndefined();
  const packed = packRuleResults(results);
  expect(packed?.of).toEqual(new Uint8Array([0, 1, 2, 0]));
  const all = results.map((_, n) => device({ id: `dev_0000000000000000000000000${n}`, repeat: true }));
  if (!packed) throw new Error("nothing was packed");
  const { devices, skips } = applyRuleResults(all, packed, noneSkipped);
  expect(skips).toEqual(new Map([[all[1]?.id, "muted"]]));
  expect(devices.map(({ notBefore, repeat }) => [notBefore, repeat])).toEqual([
    [undefined, true],
    [undefined, false],
    [until.getTime(), true],
    [undefined, true],
  ]);
});
