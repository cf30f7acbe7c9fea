import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { createSlots } from "./project-limits.ts";

const [one, other, third] = [newProjectId(new Date()), newProjectId(new Date()), newProjectId(new Date())] as const;

test("each project has a limit, and all projects together have one", () => {
  const { acquire } = createSlots({ perProject: () => 2, total: 3 }, "streams");
  const first = acquire(one);
  acquire(one);
  expect(() => acquire(one)).toThrow("streams: a project may have at most 2 open here");
  acquire(other);
  expect(() => acquire(third)).toThrow("streams: this gateway has 3 open, its limit; close one, or try again later");
  first();
  acquire(third);
  expect(() => acquire(one)).toThrow(expect.objectContaining({ code: "rate-limited", retryAfterSeconds: 5 }));
});

test("projects with several slots leave one for a project without", () => {
  const { acquire } = createSlots({ perProject: () => 4, total: 32 }, "imports");
  const projects = Array.from({ length: 8 }, () => newProjectId(new Date()));
  const refusals: string[] = [];
  for (const project of projects)
    for (let n = 0; n < 4; n++)
      try {
        acquire(project);
      } catch (error) {
        refusals.push(String(error));
      }
  expect(refusals).toEqual([expect.stringContaining("the last of 32 places here are for projects that have none")]);
  acquire(one);
});

test("releasing a slot twice frees one slot", () => {
  const { acquire } = createSlots({ perProject: () => 1, total: 1 }, "streams");
  const first = acquire(one);
  first();
  first();
  acquire(one);
  expect(() => acquire(other)).toThrow("has 1 open, its limit");
});
