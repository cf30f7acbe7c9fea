import { describe, expect, test } from "vitest";
import { compareVersions, parseVersion } from "./version.ts";

const compared = (one: string, other: string): number | undefined => {
  const [left, right] = [parseVersion(one), parseVersion(other)];
  return left && right && Math.sign(compareVersions(left, right));
};

describe("versions", () => {
  test.each([
    ["2.9", "2.10"],
    ["2.10-beta", "2.10"],
    ["2.10-alpha", "2.10-beta"],
    ["2.10-beta.2", "2.10-beta.11"],
    ["2.10-beta", "2.10-beta.1"],
    ["2.10-1", "2.10-beta"],
    ["2.10.0-rc.1", "2.10"],
    ["2.10", "2.10.0.1"],
    ["9", "10"],
    ["2.0.99999999999999999998", "2.0.99999999999999999999"],
    ["v1.2.3", "V1.2.4"],
    ["0", "0.0.1"],
  ])("%s is older than %s", (older, newer) => {
    expect(compared(older, newer)).toBe(-1);
    expect(compared(newer, older)).toBe(1);
  });

  test.each([
    ["2.10", "2.10.0"],
    ["2.10.0", "02.10"],
    ["2.10+4711", "2.10+4712"],
    ["v17", "17.0.0"],
    ["1.0-RC", "1.0-rc"],
    ["0", "0.0"],
  ])("%s is %s", (one, other) => {
    expect(compared(one, other)).toBe(0);
  });

  test.each(["", "beta", "2.", ".2", "2..1", "2.x", "2.10 (4711)", "-2", "2.10-", "1e3", " 2.1", "1.".repeat(100)])(
    "%j is none",
    (text) => {
      expect(parseVersion(text)).toBeUndefined();
    },
  );
});
