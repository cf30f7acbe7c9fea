import { SendNotification } from "@herald/contracts";
import { expect, test } from "vitest";
import { z } from "zod";
import { describeIssues } from "./describe-issues.ts";

const describe = (schema: z.ZodType, value: unknown, options = {}): string[] => {
  const result = schema.safeParse(value);
  if (result.success) throw new Error("the schema accepted it");
  return describeIssues(result.error, { schema, ...options });
};

const shape = z.strictObject({ name: z.string().min(1).max(3), size: z.number().int().min(2).max(5) });

test.each<[string, z.ZodType, unknown, string[]]>([
  ["a missing field", shape, { size: 3 }, ["name: is required and must be a string"]],
  ["a wrong type", shape, { name: 1, size: "3" }, ["name: must be a string", "size: must be a number"]],
  ["null for a value", shape, { name: null, size: 3 }, ["name: must be a string"]],
  ["empty text", shape, { name: "", size: 3 }, ["name: may not be empty"]],
  ["long text", shape, { name: "abcd", size: 3 }, ["name: must have at most 3 characters"]],
  ["a number too small", shape, { name: "a", size: 1 }, ["size: must be at least 2"]],
  ["a number too large", shape, { name: "a", size: 6 }, ["size: must be at most 5"]],
  ["a fraction", shape, { name: "a", size: 2.5 }, ["size: must be a whole number"]],
  ["the whole is no object", shape, [], ["body: must be an object"]],
  ["the whole is missing", shape, undefined, ["body: is required and must be an object"]],
  [
    "a typo",
    shape,
    { nmae: "a", size: 3 },
    ["name: is required and must be a string", "nmae: unknown field; did you mean `name`?"],
  ],
  ["an unknown field", shape, { name: "a", size: 3, colour: 1 }, ["colour: unknown field; known here: `name`, `size`"]],
  ["a choice", z.enum(["ios", "web"]), "mac", ["body: must be one of `ios`, `web`"]],
  ["one value", z.literal("ios"), "mac", ["body: must be `ios`"]],
  ["an entry of a list", z.object({ to: z.array(z.string()) }), { to: ["a", 1] }, ["to.1: must be a string"]],
  ["a short list", z.object({ to: z.array(z.string()).min(2) }), { to: ["a"] }, ["to: must have at least 2 entries"]],
  ["a schema's own words", z.string().regex(/^a/, "must begin with a"), "b", ["body: must begin with a"]],
  ["a pattern without words", z.string().regex(/^a$/), "b", ["body: must match /^a$/"]],
  [
    "a format",
    z.object({ at: z.iso.datetime() }),
    { at: "x" },
    ["at: must be an RFC 3339 time, such as 2030-01-31T09:00:00Z"],
  ],
  ["a multiple", z.number().multipleOf(5), 3, ["body: must be a multiple of 5"]],
  [
    "a name in a record",
    z.record(z.string().regex(/^[a-z]+$/, "must be lower case"), z.string()),
    { A: "x" },
    ["A: this name is not accepted: must be lower case"],
  ],
  ["a refinement", z.string().refine(() => false, "must be something else"), "x", ["body: must be something else"]],
  ["not a number", z.number(), Number.NaN, ["body: must be a number"]],
])("%s", (_name, schema, value, expected) => {
  expect(describe(schema, value)).toEqual(expected);
});

test("a union of plain types names them all", () => {
  expect(describe(z.union([z.string(), z.number()]), true)).toEqual(["body: must be a string or a number"]);
});

test("a union of values and types names them all", () => {
  expect(describe(z.union([z.literal("all"), z.number()]), true)).toEqual(["body: must be `all` or a number"]);
});

const token = z.strictObject({ key_id: z.string(), team_id: z.string(), private_key: z.string() });
const certificate = z.strictObject({ certificate: z.string(), private_key: z.string() });

test("of a union's alternatives the one that was meant is described", () => {
  expect(describe(z.union([token, certificate]), { key_id: "K", private_key: "P" })).toEqual([
    "team_id: is required and must be a string",
  ]);
  expect(describe(z.union([token, certificate]), { certificate: "C", private_key: 1 })).toEqual([
    "private_key: must be a string",
  ]);
});

test("a typo inside a union is answered with the name that was meant", () => {
  expect(describe(z.union([token, certificate]), { key_id: "K", teem_id: "T", private_key: "P" })).toEqual([
    "team_id: is required and must be a string",
    "teem_id: unknown field; did you mean `team_id`?",
  ]);
});

test("a discriminated union names the values that choose", () => {
  const by = z.discriminatedUnion("by", [z.object({ by: z.literal("page") }), z.object({ by: z.literal("key") })]);
  expect(describe(z.object({ request: by }), { request: { by: "x" } })).toEqual([
    "request.by: must be one of `page`, `key`",
  ]);
});

test("describes every problem at once", () => {
  expect(
    describe(SendNotification, {
      notification: { titel: "x", title: "", targets: [], ttl: -1, priority: "urgent", send_at: "tomorrow" },
    }),
  ).toEqual([
    "notification.title: may not be empty",
    "notification.targets: at least one target is required",
    "notification.priority: must be one of `high`, `normal`",
    "notification.ttl: must be at least 0",
    "notification.send_at: must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00+01:00, or one without it beside `time_zone`",
    "notification.titel: unknown field; did you mean `title`?",
  ]);
});

test("a prefix stands before every path", () => {
  expect(describe(shape, { name: 1, size: 3 }, { prefix: "device" })).toEqual(["device.name: must be a string"]);
  expect(describe(shape, 1, { prefix: "device" })).toEqual(["device: must be an object"]);
});

test("a refused value is never repeated", () => {
  const secret = "hpt_this_is_a_secret";
  const all = describe(z.strictObject({ token: z.literal("x"), kind: z.enum(["a"]), url: z.url() }), {
    token: secret,
    kind: secret,
    url: secret,
  });
  expect(all).toHaveLength(3);
  expect(all.join()).not.toContain(secret);
});

test("a hostile body gets a bounded answer", () => {
  const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}${"x".repeat(200)}`, 1]));
  const all = describe(z.strictObject({ name: z.string().optional() }), body);
  expect(all).toHaveLength(101);
  expect(all.at(-1)).toBe("4900 more problems like these");
  expect(Math.max(...all.map((one) => one.length))).toBeLessThan(200);
});

test("a schema that refers to itself is walked without end", () => {
  type Tree = { name: string; children?: Tree[] | undefined };
  const tree: z.ZodType<Tree> = z.lazy(() => z.strictObject({ name: z.string(), children: z.array(tree).optional() }));
  expect(describe(tree, { name: "a", children: [{ name: "b", childen: [] }] })).toEqual([
    "children.0.childen: unknown field; did you mean `children`?",
  ]);
});
