import { type ErrorCode, errors, Problem } from "@herald/contracts";
import { expect, test } from "vitest";
import { HeraldError, toProblem } from "./herald-error.ts";

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
  expect(new HeraldError("topic-not-found", []).messages).toEqual(["No such topic"]);
});

test("the cause is kept for the log", () => {
  const cause = new Error("why");
  expect(new HeraldError("bus-unavailable", "the bus is unavailable", { cause }).cause).toBe(cause);
});
