import { describe, expect, test } from "vitest";
import { withoutProtected } from "./protected-metadata.ts";

const paths = ["user_id", "billing.plan", "a.b.c"];

describe("a client's data", () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    ["what is not protected", { plan: "pro", billing: { city: "x" } }, { plan: "pro", billing: { city: "x" } }, []],
    ["a protected value", { user_id: "u", plan: 1 }, { plan: 1 }, ["metadata.user_id"]],
    ["in other letters", { UserID: 1, __userid_: 2 }, {}, ["metadata.UserID", "metadata.__userid_"]],
    ["its removal", { user_id: null }, {}, ["metadata.user_id"]],
    ["what is below it", { user_id: { is: "u" } }, {}, ["metadata.user_id"]],
    ["a path inside", { billing: { plan: "pro", city: "x" } }, { billing: { city: "x" } }, ["metadata.billing.plan"]],
    ["what would replace its parent", { billing: "none" }, {}, ["metadata.billing"]],
    ["what would remove its parent", { a: null }, {}, ["metadata.a"]],
    ["a list in its parent's place", { a: { b: [] } }, { a: {} }, ["metadata.a.b"]],
    ["a parent that merges", { a: { b: { d: 1 } } }, { a: { b: { d: 1 } } }, []],
    ["a key of underscores alone", { _: 1, a: { _: 2 } }, { _: 1, a: { _: 2 } }, []],
  ])("%s", (_, metadata, kept, ignored) => {
    expect(withoutProtected({ metadata }, paths)).toEqual({ metadata: kept, identifiers: undefined, ignored });
  });

  test("identifiers are protected too", () => {
    const sifted = withoutProtected({ identifiers: { user_id: 1, os: "17" } }, paths);
    expect(sifted).toEqual({ metadata: undefined, identifiers: { os: "17" }, ignored: ["identifiers.user_id"] });
  });

  test("a protected path covers longer ones, in either order", () => {
    for (const list of [
      ["a", "a.b"],
      ["a.b", "a"],
    ])
      expect(withoutProtected({ metadata: { a: { c: 1 } } }, list).ignored).toEqual(["metadata.a"]);
  });

  test("nothing is protected without protected paths", () => {
    for (const list of [[], undefined])
      expect(withoutProtected({ metadata: { user_id: 1 } }, list).ignored).toEqual([]);
  });
});
