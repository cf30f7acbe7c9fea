import { describe, expect, test } from "vitest";
import { emptyTally, finalStatus } from "./notification-counts.ts";

describe("the status at the end", () => {
  test.each([
    ["completed", false, {}],
    ["completed", false, { devices: 2, expired: 1, accepted: 1 }],
    ["completed", false, { devices: 1, failed: 1 }],
    ["expired", false, { devices: 2, expired: 2 }],
    ["cancelled", true, { devices: 2, expired: 2 }],
    ["cancelled", true, {}],
  ] as const)("%s", (status, cancelled, tally) => {
    expect(finalStatus(cancelled, { ...emptyTally, ...tally })).toBe(status);
  });
});
