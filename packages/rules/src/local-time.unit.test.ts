import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import { instantOf, localTime } from "./local-time.ts";

const iso = (local: string, zone: string) => instantOf(local, zone).toISOString();

describe("instantOf", () => {
  it("takes the first instant after a gap and the first of two in an overlap", () => {
    expect(iso("2030-03-31T02:30:00", "Europe/Berlin")).toBe("2030-03-31T01:00:00.000Z");
    expect(iso("2030-03-31T02:00:00", "Europe/Berlin")).toBe("2030-03-31T01:00:00.000Z");
    expect(iso("2030-10-27T02:30:00", "Europe/Berlin")).toBe("2030-10-27T00:30:00.000Z");
  });

  it("knows half hours, the ends of the world, leap days and a day that was left out", () => {
    // Lord Howe Island changes by half an hour.
    expect(iso("2030-10-06T02:15:00", "Australia/Lord_Howe")).toBe("2030-10-05T15:30:00.000Z");
    expect(iso("2030-04-07T01:45:00", "Australia/Lord_Howe")).toBe("2030-04-06T14:45:00.000Z");
    expect(iso("2030-03-31T09:00:00", "Pacific/Kiritimati")).toBe("2030-03-30T19:00:00.000Z");
    expect(iso("2030-03-31T09:00:00", "Etc/GMT+12")).toBe("2030-03-31T21:00:00.000Z");
    expect(iso("2028-02-29T23:30:00", "America/New_York")).toBe("2028-03-01T04:30:00.000Z");
    expect(iso("2011-12-30T12:00:00", "Pacific/Apia")).toBe("2011-12-30T10:00:00.000Z");
  });

  const years = process.env.HERALD_TEST_LONG ? 3 : 1;

  /** Every change of clocks, with local times around it. */
  const casesOf = (zone: string) => {
    const cases: { local: Temporal.PlainDateTime; change: Temporal.ZonedDateTime }[] = [];
    let change = Temporal.ZonedDateTime.from(`2026-01-01T00:00[${zone}]`).getTimeZoneTransition("next");
    while (change && change.year < 2026 + years) {
      const before = change.subtract({ nanoseconds: 1 }).offsetNanoseconds;
      for (const offset of [before, change.offsetNanoseconds])
        for (const minutes of [-61, -30, 0, 15, 60]) {
          const wall = change.toInstant().toZonedDateTimeISO("UTC").add({ nanoseconds: offset }).add({ minutes });
          cases.push({ local: wall.toPlainDateTime(), change });
        }
      change = change.getTimeZoneTransition("next");
    }
    return cases;
  };

  it("agrees with Temporal at every change of clocks of every zone for a year", () => {
    const wrong: string[] = [];
    let compared = 0;
    for (const zone of Intl.supportedValuesOf("timeZone"))
      for (const { local, change } of casesOf(zone)) {
        const earlier = local.toZonedDateTime(zone, { disambiguation: "earlier" });
        const isGap = !earlier.toPlainDateTime().equals(local);
        const expected = isGap ? change.epochMilliseconds : earlier.epochMilliseconds;
        compared++;
        const actual = instantOf(local.toString({ smallestUnit: "second" }), zone).getTime();
        if (actual !== expected) wrong.push(`${zone} ${local}: ${new Date(actual).toISOString()}`);
      }
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(1_500 * years);
  });
});

describe("localTime", () => {
  it("is what clocks show", () => {
    expect(localTime(new Date("2030-03-31T00:59:59.900Z"), "Europe/Berlin")).toBe("2030-03-31T01:59:59");
    expect(localTime(new Date("2030-03-31T01:00:00Z"), "Europe/Berlin")).toBe("2030-03-31T03:00:00");
    expect(localTime(new Date("2030-01-01T00:00:00Z"), "Asia/Kathmandu")).toBe("2030-01-01T05:45:00");
  });
});
