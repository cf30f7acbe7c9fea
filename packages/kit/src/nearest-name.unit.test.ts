import { expect, test } from "vitest";
import { nearestName } from "./nearest-name.ts";

const fields = ["title", "body", "targets", "link_to", "collapse_id", "ttl"];

test.each([
  ["titel", "title"], // two neighbours swapped
  ["tite", "title"],
  ["tittle", "title"],
  ["Title", "title"],
  ["target", "targets"],
  ["linkto", "link_to"],
  ["collapseId", "collapse_id"],
  ["tll", "ttl"],
  ["zzz", undefined],
  ["subject", undefined],
  ["", undefined],
  ["t".repeat(65), undefined],
])("%s is closest to %s", (typo, expected) => {
  expect(nearestName(typo, fields)).toBe(expected);
});

test("nothing is near when nothing is known", () => {
  expect(nearestName("title", [])).toBeUndefined();
});
