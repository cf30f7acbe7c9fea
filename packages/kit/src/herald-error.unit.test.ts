import { type ErrorCode, errors, Problem } from "@herald/contracts";
import { expect, test } from "vitest";
import { z } from "zod";
import { faultsOf } from "./describe-issues.ts";
import { faultOf, HeraldError, messageOf, notFound, pointerTo, toProblem } from "./herald-error.ts";

const codes = Object.keys(errors) as ErrorCode[];

test.each(codes)("%s becomes a problem of the contract with the table's status", (code) => {
  const { status, headers, body } = toProblem(new HeraldError(code, ["a: one", "b: two"]), "req-1");
  expect(Problem.parse(body)).toEqual({
    errors: ["a: one", "b: two"],
    problems: [
      { pointer: "a", detail: "one", code },
      { pointer: "b", detail: "two", code },
    ],
    detail: "a: one; and 1 more",
    type: `/docs/errors#${code}`,
    title: errors[code].title,
    status: errors[code].status,
    instance: "req-1",
  });
  expect(status).toBe(errors[code].status);
  expect(headers["content-type"]).toBe("application/problem+json; charset=utf-8");
  expect(headers["www-authenticate"]).toBe(status === 401 ? "Bearer" : undefined);
  expect("retry-after" in headers).toBe(status === 503 || status === 429);
});

test.each([
  new Error("secret hpt_0123456789abcdef in a message"),
  new TypeError("x"),
  "a string",
  undefined,
  null,
  { code: "validation-failed", messages: ["not one of ours"] },
])("an unknown error is an internal one that says nothing of itself: %s", (thrown) => {
  const { status, body } = toProblem(thrown, "req-1");
  expect(status).toBe(500);
  expect(body.type).toBe("/docs/errors#internal");
  expect(body.errors).toEqual(["Herald failed; the log has the reason under this request id"]);
});

test("Retry-After is whole seconds, rounded up", () => {
  expect(
    toProblem(new HeraldError("rate-limited", "later", { retryAfterSeconds: 1.2 }), "r").headers["retry-after"],
  ).toBe("2");
});

test("an error may bring headers of its own", () => {
  const error = new HeraldError("method-not-allowed", "method: must be GET", { headers: { allow: "GET" } });
  expect(toProblem(error, "r").headers.allow).toBe("GET");
});

test("an error without messages says its title, so that no answer has an empty list", () => {
  expect(new HeraldError("topic-not-found", []).messages).toEqual(["Topic not found"]);
});

test("the cause is kept for the log", () => {
  const cause = new Error("why");
  expect(new HeraldError("bus-unavailable", "the bus is unavailable", { cause }).cause).toBe(cause);
});

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

test.each([
  [notFound("webhook-not-found", "id"), "id: webhook not found"],
  [notFound("dead-letter-not-found", "id", "kept for 30 days"), "id: dead letter not found; kept for 30 days"],
])("a missing thing is named after its code: %s", (error, message) => {
  expect(error.message).toBe(message);
});
