import { describe, expect, test } from "vitest";
import { noDevices } from "./counts.ts";
import { currentStatus, finalStatus, isFinished } from "./notification-status.ts";

const quiet = { scheduled: false, cancelled: false, queued: false };

describe("the status before the end", () => {
  test.each([
    ["accepted", { queued: true }],
    ["scheduled", { scheduled: true }],
    ["sending", {}],
    ["cancelled", { cancelled: true, queued: true }],
    ["cancelled", { cancelled: true, scheduled: true }],
  ] as const)("%s", (status, progress) => {
    expect(currentStatus({ ...quiet, ...progress })).toBe(status);
  });
});

describe("the status at the end", () => {
  test.each([
    ["completed", false, {}],
    ["completed", false, { devices: 2, expired: 1, accepted: 1 }],
    ["completed", false, { devices: 1, failed: 1 }],
    ["expired", false, { devices: 2, expired: 2 }],
    ["cancelled", true, { devices: 2, expired: 2 }],
    ["cancelled", true, {}],
  ] as const)("%s", (status, cancelled, tally) => {
    expect(finalStatus(cancelled, { ...noDevices, ...tally })).toBe(status);
  });
});

test.each([
  [{ expandedBatches: 0, finalRoots: 0, open: 0 }, true],
  [{ expandedBatches: 2, finalRoots: 1, open: 0 }, false],
  [{ expandedBatches: 2, finalRoots: 2, open: 1 }, false],
  [{ expandedBatches: 2, finalRoots: 2, open: 0 }, true],
])("finished: %o is %s", (state, finished) => {
  expect(isFinished(state)).toBe(finished);
});
