import { HeraldError } from "@herald/client";
import { expect, test } from "vitest";
import { pointersByField } from "../api/problems.ts";
import { enteredOf, type FieldSpec, isComplete, sentOf } from "./field-values.ts";

const field = (as: FieldSpec["as"], more: Partial<FieldSpec> = {}) => ({ one: { label: "One", as, ...more } });

test.each<[as: FieldSpec["as"], value: unknown, entered: unknown]>([
  ["text", "a", "a"],
  ["area", "-----BEGIN\n", "-----BEGIN\n"],
  ["lines", ["a", "b"], "a\nb"],
  ["json", { a: 1 }, '{\n  "a": 1\n}'],
  ["number", 0, 0],
  ["decimal", 0.5, "0.5"],
  ["percent", 0.07, "7"],
  ["percent", 0, "0"],
  ["switch", false, false],
  ["boxes", [], []],
  ["many", ["a"], ["a"]],
  ["tags", [], []],
])("a value is sent as it came: %s %j", (as, value, entered) => {
  const fields = field(as);
  expect(enteredOf(fields, { one: value })).toEqual({ one: entered });
  expect(sentOf(fields, { one: entered })).toEqual({ one: value });
});

test.each<[as: FieldSpec["as"]]>([
  ["text"],
  ["area"],
  ["lines"],
  ["secret"],
  ["json"],
  ["time"],
  ["number"],
  ["percent"],
])("nothing is sent for an empty field: %s", (as) => {
  expect(sentOf(field(as), enteredOf(field(as), {}))).toEqual({});
  expect(sentOf(field(as, { empty: null }), enteredOf(field(as), {}))).toEqual({ one: null });
});

test("a text of another type is left to the API, and a secret is never shown again", () => {
  expect(sentOf(field("json"), { one: "-----BEGIN PUBLIC KEY-----" })).toEqual({ one: "-----BEGIN PUBLIC KEY-----" });
  expect(sentOf(field("percent"), { one: "12,5" })).toEqual({ one: 0.125 });
  expect(enteredOf(field("secret"), { one: "s" })).toEqual({ one: "" });
});

test("a form is complete when what is required and shown was entered, and is right", () => {
  const fields = {
    name: { label: "Name", required: true, check: (text: string) => (text === "no" ? "not this" : undefined) },
    key: { label: "Key", required: true, when: ({ name }: { name?: unknown }) => name === "keyed" },
  } as const;
  expect(isComplete(fields, { name: " ", key: "" })).toBe(false);
  expect(isComplete(fields, { name: "no", key: "" })).toBe(false);
  expect(isComplete(fields, { name: "yes", key: "" })).toBe(true);
  expect(isComplete(fields, { name: "keyed", key: "" })).toBe(false);
});

test("a problem is beside its field, behind the name of the resource or without it", () => {
  const at = (...pointers: string[]) =>
    new HeraldError("validation-failed", "no", {
      status: 422,
      problems: pointers.map((pointer) => ({ pointer, detail: "is wrong", code: "invalid" })),
    });
  const names = ["kind", "title", "subject", "bundle_ids"];
  expect(pointersByField(at("#/kind/title", "#/kind/quiet_hours/to"), names)).toEqual({ title: "#/kind/title" });
  expect(pointersByField(at("#/kind/frequency_cap/count"), ["kind", "count"])).toEqual({
    count: "#/kind/frequency_cap/count",
  });
  expect(pointersByField(at("#/subject", "#/bundle_ids/1"), names)).toEqual({
    subject: "#/subject",
    bundle_ids: "#/bundle_ids",
  });
  expect(pointersByField(new Error("no answer"), names)).toEqual({});
});
