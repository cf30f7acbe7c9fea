import { expect, test } from "vitest";
import { isDevicePath } from "./device-values.ts";

test.each([
  "metadata.plan",
  "identifiers.current_locale",
  "metadata.a.b.c.d.e",
  "metadata.a-b",
  "metadata.constructor",
])("texts may show %s", (path) => {
  expect(isDevicePath(path.split("."))).toBe(true);
});

test.each([
  ...["metadata", "identifiers", "token", "metadata.__proto__", "metadata.$where", "metadata.", "metadata.0"],
  ...["metadata.a.b.c.d.e.f", "user.id", `metadata.${"a".repeat(65)}`],
])("texts may not show %s", (path) => {
  expect(isDevicePath(path.split("."))).toBe(false);
});
