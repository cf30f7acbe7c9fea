import type { TimeOfSend } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { scheduleOf, scheduleProblems } from "./schedule.ts";
import { planWaves } from "./waves.ts";

const at = new Date("2030-03-30T12:00:00.000Z");
const zone = "Europe/Berlin";
const local = (sendAt: string, past?: TimeOfSend["past"]) => ({
  send_at: sendAt,
  time_zone: "device",
  ...(past && { past }),
});

describe("the time of a send", () => {
  test.each<[string, TimeOfSend, string[]]>([
    ["more than 30 days ahead", { send_at: "2030-04-29T12:00:01Z" }, ["send_at"]],
    ["30 days ahead in its zone", { send_at: "2030-04-29T14:00:00", time_zone: zone }, []],
    ["30 days ahead where it comes first", local("2030-04-30T02:00:00"), []],
    ["more than 30 days ahead everywhere", local("2030-04-30T02:00:01"), ["send_at"]],
    ["ahead everywhere", local("2030-03-31T02:00:01"), []],
    ["passed at +14", local("2030-03-31T02:00:00"), ["past"]],
    ["passed at +14, with an answer", local("2030-03-31T02:00:00", "tomorrow"), []],
  ])("%s", (_name, time, fields) => {
    expect(scheduleProblems(time, at).map((problem) => problem.split(":")[0])).toEqual(fields);
  });

  test("in a named zone is one instant, in the night when clocks change, too", () => {
    expect(scheduleOf({ send_at: "2030-03-31T02:30:00", time_zone: zone, ttl: 60 }, { at, zone: "UTC" })).toEqual({
      sendAt: "2030-03-31T01:00:00.000Z",
      expiresAt: "2030-03-31T01:01:00.000Z",
    });
  });

  test("of devices is from the first zone to the last", () => {
    expect(scheduleOf({ ...local("2030-04-01T09:00:00"), ttl: 60 }, { at, zone })).toEqual({
      sendAt: "2030-03-31T19:00:00.000Z",
      expiresAt: "2030-04-01T21:01:00.000Z",
      local: { at: "2030-04-01T09:00:00", zone, since: at.toISOString(), ttlMs: 60_000 },
    });
  });
});

describe("planWaves", () => {
  const plan = (time: string, past: TimeOfSend["past"], zones: string[]) =>
    planWaves({ at: time, past, zone, since: at.toISOString(), ttlMs: 0 }, zones).map((wave) => [
      wave.at.toISOString(),
      wave.zones.join(" "),
      ...(wave.skip ? [wave.skip] : []),
    ]);

  test("joins zones whose clocks agree; devices without a zone have the default one", () => {
    expect(
      plan("2030-04-01T09:00:00", undefined, ["none", "Europe/Paris", "Asia/Kathmandu", "Pacific/Kiritimati"]),
    ).toEqual([
      ["2030-03-31T19:00:00.000Z", "Pacific/Kiritimati"],
      ["2030-04-01T03:15:00.000Z", "Asia/Kathmandu"],
      ["2030-04-01T07:00:00.000Z", "Europe/Paris none"],
    ]);
  });

  test.each([
    [
      "skip",
      [
        ["2030-03-30T12:00:00.000Z", "Asia/Tokyo", "past-local-time"],
        ["2030-03-30T14:00:00.000Z", "Atlantic/Azores"],
      ],
    ],
    [
      "now",
      [
        ["2030-03-30T12:00:00.000Z", "Asia/Tokyo"],
        ["2030-03-30T14:00:00.000Z", "Atlantic/Azores"],
      ],
    ],
    [
      "tomorrow",
      [
        ["2030-03-30T14:00:00.000Z", "Atlantic/Azores"],
        ["2030-03-31T04:00:00.000Z", "Asia/Tokyo"],
      ],
    ],
  ] as const)("where the time has passed: %s", (past, waves) => {
    expect(plan("2030-03-30T13:00:00", past, ["Asia/Tokyo", "Atlantic/Azores"])).toEqual(waves);
  });

  test("all zones of the world are at most forty waves", () => {
    expect(plan("2030-04-01T09:00:00", undefined, Intl.supportedValuesOf("timeZone")).length).toBeLessThanOrEqual(40);
  });
});
