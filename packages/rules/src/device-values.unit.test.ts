import { expect, test } from "vitest";
import { deviceValues } from "./device-values.ts";

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
