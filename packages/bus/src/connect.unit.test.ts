import { expect, test } from "vitest";
import { versionProblem } from "./connect.ts";

test.each(["2.12.0", "2.15.2", "3.0.0-dev", "2.12.0-RC.1"])("%s is new enough", (version) => {
  expect(versionProblem(version)).toBeUndefined();
});

test.each(["2.11.10", "2.9.0", "1.4.1", ""])("%j is too old, and the reason says what to do", (version) => {
  expect(versionProblem(version)).toContain("Herald needs 2.12 or later");
});
