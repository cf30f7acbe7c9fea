import { describe, expect, test } from "vitest";
import { NewNotification } from "./http/v1/send-notification.ts";
import { Kind } from "./tags.ts";

const problemsOf = (fields: Record<string, unknown>): string[] => {
  const result = NewNotification.safeParse({ title: "Hello", targets: ["all"], ...fields });
  return result.success
    ? []
    : result.error.issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`);
};

describe("labels of a notification", () => {
  const eight = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`n${at}`, "x".repeat(64)]));

  test.each([[{}], [{ campaign: "spring" }], [{ "0_a": "a/b:c=d é 🎈" }], [eight]])("%j are accepted", (of) => {
    expect(problemsOf({ labels: of, kind: "order-shipped" })).toEqual([]);
  });

  test.each<[unknown, RegExp]>([
    [{ ...eight, ninth: "x" }, /^labels: at most 8 labels/],
    [{ Campaign: "x" }, /^labels\.Campaign: .*|^labels: .*/],
    [{ "a.b": "x" }, /^labels/],
    [{ a: "" }, /^labels\.a: may not be empty/],
    [{ a: "x".repeat(65) }, /^labels\.a: must be at most 64/],
    [{ a: "x\ny" }, /^labels\.a: may not contain control/],
    [{ a: "\ud800" }, /^labels\.a: may not contain control/],
    [{ a: "\ufffd" }, /^labels\.a: may not contain control/],
    [{ a: 1 }, /^labels\.a/],
    [{ a: null }, /^labels\.a/],
    [["a"], /^labels/],
    ["a=b", /^labels: must be a JSON object/],
    [null, /^labels/],
  ])("%j are refused", (of, problem) => {
    expect(problemsOf({ labels: of }).join("\n")).toMatch(problem);
  });
});

describe("the kind of a notification", () => {
  test.each(["a", "order-shipped", "2fa", "x".repeat(64)])("%s is accepted", (kind) => {
    expect(Kind.parse(kind)).toBe(kind);
  });

  test.each(["", "-a", "Order", "a b", "a/b", "x".repeat(65), 7, null])("%j is refused", (kind) => {
    expect(problemsOf({ kind }).join()).toMatch(/^kind: /);
  });
});
