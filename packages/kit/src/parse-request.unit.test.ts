import { expect, test } from "vitest";
import { z } from "zod";
import { cutLists, parseSearch } from "./parse-request.ts";

const Shape = z.strictObject({
  order: z
    .strictObject({
      lines: z.array(z.strictObject({ tags: z.array(z.string()).max(2).optional() })).max(3),
      notes: z.array(z.string()),
      kind: z.union([z.array(z.string()).max(1), z.array(z.number()).max(9)]).optional(),
    })
    .superRefine(() => {}),
});

const cut = (value: unknown) => {
  cutLists(Shape, value);
  return value;
};
const many = <Entry>(count: number, entry: Entry) => Array.from({ length: count }, () => structuredClone(entry));

test("a list that is longer than its schema accepts keeps one entry more than that, within others too", () => {
  expect(cut({ order: { lines: many(500, { tags: many(500, "a") }), notes: [] } })).toEqual({
    order: { lines: many(4, { tags: many(3, "a") }), notes: [] },
  });
});

test("keeps lists within their maximum, lists without one, and values of another type", () => {
  for (const value of [
    { order: { lines: many(3, {}), notes: many(500, "a") } },
    { order: { lines: [], notes: [], kind: many(9, 1) } },
    { order: { lines: "many", notes: 1 }, more: many(500, 1) },
    { order: [many(500, 1)] },
    null,
    "text",
  ])
    expect(cut(structuredClone(value))).toEqual(value);
});

test("zod still refuses a shortened list", () => {
  const value = { order: { lines: many(500, {}), notes: [] } };
  cutLists(Shape, value);
  expect(Shape.safeParse(value).error?.issues).toMatchObject([{ code: "too_big", path: ["order", "lines"] }]);
});

test.each(["a=%ff", "a=%ED%A0%BD", "a=b&%C3=d", "a=%C3%28"])("a query that is not UTF-8 is refused: %s", (query) => {
  expect(() => parseSearch(query)).toThrow("query: is not percent-encoded UTF-8");
});

test.each<[string, string | null]>([
  ["a=%F0%9F%98%80", "😀"],
  ["a=100%", "100%"],
  ["a=%EF%BF%BD", "\ufffd"],
  ["a=%20b+c", " b c"],
  ["b=c", null],
])("a query that is UTF-8 is read: %s", (query, expected) => {
  expect(parseSearch(query).get("a")).toBe(expected);
});
