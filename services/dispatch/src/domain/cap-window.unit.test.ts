import { expect, test } from "vitest";
import { windowStart } from "./cap-window.ts";

test.each([
  ["hour", "UTC", "2030-01-15T10:59:59.999Z", "2030-01-15T10:00:00Z"],
  ["day", "UTC", "2030-01-15T23:59:59.999Z", "2030-01-15T00:00:00Z"],
  ["day", "Europe/Berlin", "2030-01-15T23:30:00Z", "2030-01-15T23:00:00Z"],
  ["day", "America/New_York", "2030-01-15T04:59:00Z", "2030-01-14T05:00:00Z"],
  // A Sunday and a Monday.
  ["week", "UTC", "2030-01-20T23:59:00Z", "2030-01-14T00:00:00Z"],
  ["week", "UTC", "2030-01-21T00:00:00Z", "2030-01-21T00:00:00Z"],
  ["week", "UTC", "2030-01-01T12:00:00Z", "2029-12-31T00:00:00Z"],
  // A day of 23 hours, and one whose midnight clocks skip.
  ["day", "Europe/Berlin", "2030-03-31T20:00:00Z", "2030-03-30T23:00:00Z"],
  ["day", "Africa/Cairo", "2030-04-26T12:00:00Z", "2030-04-25T22:00:00Z"],
  // The hour that clocks show twice is one window.
  ["hour", "Europe/Berlin", "2030-10-27T01:30:00Z", "2030-10-27T00:00:00Z"],
] as const)("a window of a %s in %s at %s", (per, zone, now, start) => {
  expect(windowStart(per, zone, new Date(now))).toEqual(new Date(start));
});

test("a later instant never has an earlier window", () => {
  for (const per of ["hour", "day", "week"] as const)
    for (const zone of ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]) {
      let last = new Date(0);
      for (let at = Date.parse("2030-03-28T00:00:00Z"); at < Date.parse("2030-04-09T00:00:00Z"); at += 900_000) {
        const start = windowStart(per, zone, new Date(at));
        expect(start >= last && start.getTime() <= at).toBe(true);
        last = start;
      }
    }
});
