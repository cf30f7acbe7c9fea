import fc from "fast-check";
import { expect, test } from "vitest";
import { apnsId } from "./batch.ts";

test("the same notification and device have the same id, others have another", () => {
  // Computed with sha256sum: an id that changes with a release would hide repeats across it.
  expect(apnsId("ntf_1", "dev_1")).toBe("c7af3015-86d3-8b87-96da-14c3a09cd6d2");
  expect(apnsId("ntf_1", "dev_1")).not.toBe(apnsId("ntf_1", "dev_2"));
  expect(apnsId("ntf_1", "dev_1")).not.toBe(apnsId("ntf_2", "dev_1"));
  expect(apnsId("ntf_1/dev", "1")).not.toBe(apnsId("ntf_1", "dev1"));
});

test("is a UUID of version 8 in the form that Apple takes", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (notification, device) => {
      expect(apnsId(notification, device)).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    }),
  );
});
