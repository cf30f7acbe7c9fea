import { expect, test } from "vitest";
import { exportPage } from "./export-page.ts";

type Row = { readonly id: string; readonly text: string };
const rowsOf = (count: number, bytes: number): Row[] =>
  Array.from({ length: count }, (_, at) => ({ id: `r${String(at).padStart(4, "0")}`, text: "x".repeat(bytes) }));

/** Pages of these rows, and how many rows each step read. */
const pagesOf = (all: readonly Row[]) => {
  const steps: number[] = [];
  const page = (limit: number, after?: string, signal = new AbortController().signal) =>
    exportPage({ after, limit }, signal, async (position, wanted) => {
      const rest = all.filter(({ id }) => position === undefined || id > position);
      const rows = rest.slice(0, wanted);
      steps.push(rows.length);
      return { rows, next: rest.length > wanted ? (rows.at(-1)?.id ?? null) : null };
    });
  return { page, steps };
};

test("a page of small rows is whole, and ends the export when there are no more", async () => {
  const all = rowsOf(250, 10);
  const { page, steps } = pagesOf(all);
  const texts = all.map((row) => JSON.stringify(row));
  expect(await page(1_000)).toEqual({ rows: texts, next: null });
  expect(steps).toEqual([100, 100, 50]);
  expect(await page(120)).toEqual({ rows: texts.slice(0, 120), next: "r0119" });
  expect(await page(1_000, "r0119")).toEqual({ rows: texts.slice(120), next: null });
  expect(await pagesOf([]).page(10)).toEqual({ rows: [], next: null });
});

test("large rows are cut after the last that fits, a single one is never left out, and no step is read behind the cut", async () => {
  const { page, steps } = pagesOf(rowsOf(500, 30_000));
  const { rows: shown, next } = await page(1_000);
  expect([shown.length, next, steps]).toEqual([139, "r0138", [100, 100]]);
  const huge = pagesOf(rowsOf(2, 5_000_000));
  expect(await huge.page(10)).toMatchObject({ rows: [expect.stringMatching(/^{"id":"r0000"/)], next: "r0000" });
});

test("a step that finds less than asked ends the page, and continues where it stopped", async () => {
  const found = { rows: [{ id: "a" }], next: "walk/7" };
  const signal = new AbortController().signal;
  expect(await exportPage({ limit: 5 }, signal, async () => found)).toEqual({ rows: ['{"id":"a"}'], next: "walk/7" });
});

test("nothing more is read when the asker has gone", async () => {
  const { page, steps } = pagesOf(rowsOf(500, 10));
  await expect(page(1_000, undefined, AbortSignal.abort())).rejects.toThrow();
  expect(steps).toEqual([]);
});
