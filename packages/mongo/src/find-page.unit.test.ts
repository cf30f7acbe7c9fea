import type { PageOf } from "@herald/contracts";
import { expect, test } from "vitest";
import { pageOfRows } from "./find-page.ts";

const rows = ["c", "a", "e", "b", "d"].map((id) => ({ id }));
const key = ({ id }: { id: string }) => id;
const ids = (page: { data: readonly { id: string }[] }) => page.data.map(key).join("");

test.each([
  { page: 1, shown: "ab", from: 1, to: 2 },
  { page: 3, shown: "e", from: 5, to: 5 },
  { page: 4, shown: "", from: 0, to: 0 },
])("page $page shows $shown", ({ page, shown, from, to }) => {
  const answer = pageOfRows(rows, { request: { by: "page", page, perPage: 2 }, key });
  expect(ids(answer)).toBe(shown);
  expect(answer).toMatchObject({ pagination: { count: 5, page, pages: 3, last: 3, from, to } });
});

test("no rows are one empty page", () => {
  const answer = pageOfRows([], { request: { by: "page", page: 1, perPage: 20 }, key });
  expect(answer).toEqual({ data: [], pagination: { count: 0, page: 1, pages: 1, from: 0, to: 0, last: 1 } });
});

test("a walk by key shows every row once, and ends", () => {
  const shown: string[] = [];
  let after: string | null = "";
  while (after !== null) {
    const answer: PageOf<{ id: string }> = pageOfRows(rows, { request: { by: "key", after, perPage: 2 }, key });
    shown.push(ids(answer));
    after = "next" in answer ? answer.next : null;
  }
  expect(shown).toEqual(["ab", "cd", "e"]);
});

test("an `after` that was not given out is refused", () => {
  expect(() => pageOfRows(rows, { request: { by: "key", after: "b", perPage: 2 }, key })).toThrow(/after:/);
});
