import { expect, test } from "vitest";
import { CapabilityList, capabilitiesFrom, capabilityList, hasCapability } from "./capabilities.ts";

test("a list keeps what is known, once and sorted", () => {
  const stored = capabilitiesFrom(["receipts", "draws", "of-tomorrow", "draws"]);
  expect(stored).toBe("draws receipts");
  expect(capabilityList(stored ?? "")).toEqual(["draws", "receipts"]);
  expect([hasCapability(stored, "draws"), hasCapability(stored, "buttons")]).toEqual([true, false]);
  expect([capabilitiesFrom([]), capabilitiesFrom(["other"])]).toEqual([undefined, undefined]);
  expect(hasCapability(undefined, "draws")).toBe(false);
});

test.each([
  [["receipts"], true],
  [[], true],
  [Array.from({ length: 16 }, (_, at) => `c${at}`), true],
  [Array.from({ length: 17 }, (_, at) => `c${at}`), false],
  [["Draws"], false],
  [["a b"], false],
  [["x".repeat(33)], false],
  [[1], false],
])("%j: %s", (list, isAccepted) => expect(CapabilityList.safeParse(list).success).toBe(isAccepted));
