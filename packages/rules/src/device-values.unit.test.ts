import { isDevicePath } from "@herald/contracts";
import { expect, test } from "vitest";
import { deviceValues } from "./device-values.ts";

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

test("values are found at their paths, and what no text can show is left out", () => {
  const device = {
    metadata: { plan: "pro", address: { city: "Kiel", zip: 24_103 }, list: ["a"], long: "x".repeat(257), none: null },
    identifiers: { beta: false },
  };
  const paths = [
    "plan",
    "address.city",
    "address.zip",
    "address",
    "list",
    "list.0",
    "long",
    "none",
    "plan.a",
    "constructor",
  ];
  expect(
    deviceValues(device, [...paths.map((path) => `metadata.${path}`), "identifiers.beta", "identifiers.app"]),
  ).toEqual({
    metadata: { plan: "pro", address: { city: "Kiel", zip: 24_103 } },
    identifiers: { beta: false },
  });
  expect(
    deviceValues({ metadata: JSON.parse('{"constructor":{"name":"own"}}') }, ["metadata.constructor.name"]),
  ).toEqual({
    metadata: JSON.parse('{"constructor":{"name":"own"}}'),
  });
  expect(deviceValues({}, ["metadata.plan"])).toEqual({});
});
