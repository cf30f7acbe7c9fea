import { describe, expect, test } from "vitest";
import { currentStatus, finalStatus, noDevices } from "./notification-counts.ts";

const at = new Date();

describe("the status before the end", () => {
  test.each([
    ["accepted", { expansion: "queued" }],
    ["scheduled", { dueAt: at }],
    ["sending", {}],
    ["sending", { expansion: "running" }],
    ["cancelled", { cancelledAt: at, expansion: "queued" }],
    ["cancelled", { cancelledAt: at, dueAt: at }],
  ] as const)("%s", (status, notification) => {
    expect(currentStatus(notification)).toBe(status);
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
