import fc from "fast-check";
import { expect, test } from "vitest";
import { cutText } from "./cut-text.ts";

test.each([
  ["abc", 3, "abc"],
  ["abcd", 3, "abc"],
  ["ab😀", 4, "ab😀"],
  ["ab😀", 3, "ab"],
  ["😀", 1, ""],
  ["", 5, ""],
])("%j cut to %i is %j", (text, max, expected) => {
  expect(cutText(text, max)).toBe(expected);
});

test("a cut text is whole, and lacks no more than half an emoji", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat({ max: 30 }), (text, max) => {
      const cut = cutText(text, max);
      expect(cut.isWellFormed()).toBe(true);
      expect(text.startsWith(cut)).toBe(true);
      expect(cut.length).toBeGreaterThanOrEqual(Math.min(text.length, max - 1));
      expect(cut.length).toBeLessThanOrEqual(max);
    }),
  );
});
