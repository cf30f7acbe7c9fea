import { type CountedRules, newDeviceId, type Recipient } from "@herald/contracts";
import { expect, test } from "vitest";
import { createRuleCounts } from "./rule-counts.ts";

const rules: CountedRules = {
  hours: { from: "22:00", to: "06:30", mode: "delay" },
  ownHours: true,
  zone: "UTC",
  at: "2030-01-15T05:00:00.000Z",
  expiresAt: "2030-01-16T00:00:00.000Z",
};
const device = (change: Partial<Recipient> = {}): Recipient => ({
  ...{ id: newDeviceId(new Date()), token: "", tokenAt: 0, ...change },
});
const counted = (devices: readonly Recipient[], change: Partial<CountedRules> = {}) => {
  const counts = createRuleCounts({ ...rules, ...change });
  for (const one of devices) counts.add(one);
  return counts.sums();
};

test("devices that have it switched off are muted, also in quiet hours", () => {
  expect(counted([device(), device({ off: true })])).toEqual({
    skips: { muted: 1 },
    delayed: { "2030-01-15T06:30:00.000Z": 1 },
  });
});

test("many devices wait for the full hour, and are skipped if they expire before", () => {
  const many = Array.from({ length: 101 }, () => device());
  expect(counted(many).delayed).toEqual({ "2030-01-15T07:00:00.000Z": 101 });
  expect(counted(many, { expiresAt: "2030-01-15T07:00:00.000Z" }).skips).toEqual({ "quiet-hours": 101 });
});

test("hours of users count where the send has such", () => {
  const own = device({ zone: "Asia/Tokyo", quiet: "13:00-15:00" });
  expect(counted([own]).delayed).toEqual({ "2030-01-15T06:00:00.000Z": 1 });
  expect(counted([own], { ownHours: false })).toEqual({ skips: {}, delayed: {} });
});
