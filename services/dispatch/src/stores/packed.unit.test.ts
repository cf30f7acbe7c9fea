import fc from "fast-check";
import { expect, test } from "vitest";
import { packNames, unpackNames } from "./delivery-document.ts";

const project = "projects/herald-tests/messages";

test("the common prefix of names is stored once", () => {
  const packed = packNames([`${project}/0:1%a`, undefined, `${project}/0:2%b`]);
  expect(packed).toBe(`${project}/0:\n1%a\n\n2%b`);
  expect(unpackNames(packed ?? "")).toEqual([`${project}/0:1%a`, undefined, `${project}/0:2%b`]);
});

test("missing names take no space", () => {
  expect(packNames([])).toBeUndefined();
  expect(packNames([undefined, undefined])).toBeUndefined();
});

test.each([[["a"]], [["a", "a"]], [["ab", "a"]], [["a", "ab", undefined]], [["https://a.example/1", "b"]]])(
  "%j comes back as it was",
  (names) => expect(unpackNames(packNames(names) ?? "")).toEqual(names),
);

test("any names are unpacked as they were packed", () => {
  const name = fc.option(fc.stringMatching(/^[!-~]{1,40}$/), { nil: undefined });
  fc.assert(
    fc.property(fc.array(name, { minLength: 1 }), fc.string(), (names, prefix) => {
      const longer = names.map((each) => each && prefix.replaceAll("\n", "") + each);
      const packed = packNames(longer);
      if (packed === undefined) return names.every((each) => each === undefined);
      expect(unpackNames(packed)).toEqual(longer);
      return true;
    }),
  );
});
