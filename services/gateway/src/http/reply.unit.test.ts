import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { pageLinks, pageRequest } from "./reply.ts";

const numbered = (page: number, last: number) => ({
  data: [],
  pagination: { count: last * 10, page, pages: last, last, from: 0, to: 0 },
});

const relations = (query: string, page: Parameters<typeof pageLinks>[1]) =>
  [...pageLinks({ path: "/l", search: new URLSearchParams(query) }, page).matchAll(/<([^>]*)>; rel="(\w+)"/g)].map(
    ([, target, relation]) => `${relation} ${target}`,
  );

describe("links to other pages", () => {
  test.each([
    [
      "in the middle",
      "page=2",
      numbered(2, 3),
      ["first /l?page=1", "prev /l?page=1", "next /l?page=3", "last /l?page=3"],
    ],
    ["on the only page", "", numbered(1, 1), ["first /l?page=1", "last /l?page=1"]],
    ["past the end", "page=7", numbered(7, 2), ["first /l?page=1", "prev /l?page=2", "last /l?page=2"]],
    [
      "with other parameters",
      "a=%26&page=1",
      numbered(1, 2),
      ["first /l?a=%26&page=1", "next /l?a=%26&page=2", "last /l?a=%26&page=2"],
    ],
    [
      "by key",
      "after=&per_page=5",
      { data: [], next: "k/1" },
      ["first /l?per_page=5&after=", "next /l?per_page=5&after=k%2F1"],
    ],
    ["on the last page by key", "after=k", { data: [], next: null }, ["first /l?after="]],
  ])("%s", (_, query, page, expected) => {
    expect(relations(query, page)).toEqual(expected);
  });
});

describe("the paging parameters", () => {
  test.each([
    [{}, { by: "page", page: 1, perPage: 20 }],
    [
      { page: 3, items: 5 },
      { by: "page", page: 3, perPage: 5 },
    ],
    [
      { after: "", limit: 100 },
      { by: "key", after: "", perPage: 100 },
    ],
  ])("%j", (query, request) => {
    expect(pageRequest(query)).toEqual(request);
  });

  test("refuse to contradict each other", () => {
    expect(() => pageRequest({ page: 1, after: "", items: 5, limit: 6 })).toThrow(HeraldError);
  });
});
