import { Problem } from "@herald/contracts";
import type { HttpAnswer } from "@herald/testing";
import { expect } from "vitest";

/** Expects a problem document (RFC 9457) without details that help an attacker. */
export function expectProblem(answer: HttpAnswer, status: number): Problem {
  expect(answer.status, answer.text).toBe(status);
  expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  const problem = Problem.parse(answer.body);
  expect(problem).toMatchObject({ status, instance: answer.headers.get("x-request-id") });
  expect(answer.text).not.toMatch(/node_modules|\.ts:|at \w+ \(|h[pd][tc]_\w|mongodb|\$JS/);
  return problem;
}
