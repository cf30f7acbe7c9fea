import { describe, expect, test } from "vitest";
import { AppData } from "./app-data.ts";

const nested = (depth: number): Record<string, unknown> => (depth === 1 ? { a: 1 } : { a: nested(depth - 1) });
const wide = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, index) => [`k${index}`, 1]));
const problems = (value: unknown) =>
  AppData.safeParse(value).error?.issues.map(({ path, message }) => [path.join("."), message]) ?? [];

describe("metadata and identifiers", () => {
  test.each([
    [{}],
    [nested(5)],
    [wide(64)],
    [{ a: [1, "two", null, { b: true }] }],
    [{ text: "x".repeat(16_384 - '{"text":""}'.length) }],
  ])("%# is taken", (value) => {
    expect(AppData.parse(value)).toEqual(value);
  });

  test.each([
    ["an array", [], [["", "must be a JSON object"]]],
    ["a string", "x", [["", "must be a JSON object"]]],
    ["six levels", nested(6), [["a.a.a.a.a", "may be nested at most 5 deep"]]],
    ["levels hidden in arrays", { a: [[[[[1]]]]] }, [["a.0.0.0.0", "may be nested at most 5 deep"]]],
    ["65 keys", { in: wide(65) }, [["in", "may have at most 64 keys"]]],
    ["an operator", { a: { $ne: 1 } }, [["a.$ne", "keys may not start with `$`"]]],
    ["a dotted key", { "a.b": 1 }, [["a.b", "keys may not contain `.` or NUL"]]],
    ["a NUL key", { "a\0": 1 }, [["a\0", "keys may not contain `.` or NUL"]]],
    ["an empty key", { "": 1 }, [["", "keys may not be empty"]]],
    ["17 KiB", { a: "ü".repeat(8200) }, [["", "must be at most 16384 bytes of JSON"]]],
    [
      "several faults",
      { $a: 1, "": 2 },
      [
        ["$a", "keys may not start with `$`"],
        ["", "keys may not be empty"],
      ],
    ],
  ])("%s is refused, and the message says where", (_, value, expected) => {
    expect(problems(value)).toEqual(expected);
  });
});
