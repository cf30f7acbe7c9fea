import { expect, test } from "vitest";
import { z } from "zod";
import { faultsOf } from "./describe-issues.ts";
import { faultOf, messageOf, pointerTo } from "./fault.ts";

const Body = z.strictObject({
  notification: z.strictObject({
    title: z.string().min(1).max(5),
    ttl: z.number().min(0).max(9).optional(),
    targets: z.array(z.string()).min(1).max(2),
    url: z.url().optional(),
    lane: z.enum(["direct", "broadcast"]).optional(),
    data: z.record(z.string(), z.string()).optional(),
  }),
});
const problemsIn = (notification: unknown) => {
  const { error } = Body.safeParse({ notification });
  return faultsOf(error ?? { issues: [] }, { schema: Body }).map(({ pointer, code }) => [pointer, code]);
};

test.each<[string, object, [string, string]]>([
  ["a missing field", { title: undefined }, ["#/notification/title", "required"]],
  ["a wrong type", { title: 1 }, ["#/notification/title", "invalid-type"]],
  ["a short text", { title: "" }, ["#/notification/title", "too-short"]],
  ["a long text", { title: "123456" }, ["#/notification/title", "too-long"]],
  ["a small number", { ttl: -1 }, ["#/notification/ttl", "too-small"]],
  ["a large number", { ttl: 10 }, ["#/notification/ttl", "too-large"]],
  ["a short list", { targets: [] }, ["#/notification/targets", "too-few"]],
  ["a long list", { targets: ["a", "b", "c"] }, ["#/notification/targets", "too-many"]],
  ["an entry of a list", { targets: ["a", 1] }, ["#/notification/targets/1", "invalid-type"]],
  ["a wrong format", { url: "nothing" }, ["#/notification/url", "invalid-format"]],
  ["a value that is none of those", { lane: "slow" }, ["#/notification/lane", "invalid-value"]],
  ["an unknown field", { "a/b~c d": 1 }, ["#/notification/a~1b~0c%20d", "unknown-field"]],
  ["half a character", { "\ud800": 1 }, ["#/notification/%EF%BF%BD", "unknown-field"]],
])("%s has a pointer and a code", (_, change, expected) => {
  expect(problemsIn({ title: "Hi", targets: ["all"], ...change })).toEqual([expected]);
});

test("a part of the body points into the whole body, a query parameter is named", () => {
  const { error } = z.strictObject({ name: z.string() }).safeParse({});
  const issues = error ?? { issues: [] };
  expect(faultsOf(issues, { prefix: "notifications.3" })[0]?.pointer).toBe("#/notifications/3/name");
  expect(faultsOf(issues, { whole: "query" })[0]).toEqual({
    name: "name",
    detail: "is required and must be a string",
    code: "required",
  });
});

test("what is too much to describe is counted", () => {
  const { error } = z.strictObject({}).safeParse({ a: 1, b: 2, c: 3 });
  const faults = faultsOf(error ?? { issues: [] }, { max: 1 });
  expect(faults.map(({ code }) => code)).toEqual(["unknown-field", "more-problems"]);
  expect(faults.map(messageOf)[1]).toBe("2 more problems like these");
});

test.each([
  ["device.token: must be text: of 64", { name: "device.token", detail: "must be text: of 64" }],
  ["Idempotency-Key: is in use", { name: "Idempotency-Key", detail: "is in use" }],
  ["body: is not JSON", { name: "body", detail: "is not JSON", pointer: "#" }],
  ["the bus is unavailable", { name: "", detail: "the bus is unavailable" }],
])("a message is a fault and back: %s", (message, fault) => {
  expect(faultOf(message)).toEqual(fault);
  expect(messageOf(faultOf(message))).toBe(message);
});

test("the whole body has the empty pointer", () => {
  expect(pointerTo([])).toBe("#");
});
