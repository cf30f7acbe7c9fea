import { expect, test } from "vitest";
import { exportPage } from "./export-page.ts";

const rows = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `r${at}`, text: "x".repeat(bytes) }));

test("a page of small rows is whole, and ends the export when there are no more", () => {
  const all = rows(3, 10);
  const texts = all.map((row) => JSON.stringify(row));
  expect(exportPage(all, false)).toEqual({ rows: texts, next: null });
  expect(exportPage(all, true)).toEqual({ rows: texts, next: "r2" });
  expect(exportPage([], false)).toEqual({ rows: [], next: null });
});

test("large rows are cut after the last that fits, and a single one is never left out", () => {
  const { rows: shown, next } = exportPage(rows(5, 1_500_000), false);
  expect(shown.map((row) => JSON.parse(row).id)).toEqual(["r0", "r1"]);
  expect(next).toBe("r1");
  expect(exportPage(rows(2, 5_000_000), false)).toMatchObject({
    rows: [expect.stringMatching(/^{"id":"r0"/)],
    next: "r0",
  });
});
