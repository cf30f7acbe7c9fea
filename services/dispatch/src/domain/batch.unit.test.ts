import { DueV1 } from "@herald/contracts";
import { expect, test } from "vitest";
import { batchKey, childId, scheduleSubject, unitsOf, unitsOfBatch } from "./batch.ts";

const notification = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";

test("a child stands beside its parent, not below it", () => {
  expect(childId(`${notification}/0/3`, 2)).toBe(`${notification}/0/3/2`);
  expect(childId(`${notification}/0/3/2`, 3)).toBe(`${notification}/0/3/3`);
});

test("a batch is one token of the subjects that wake it", () => {
  const id = `${notification}/12/3/2`;
  const data = { kind: "batch", projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac", key: batchKey(id), id } as const;
  expect(DueV1.subject(data)).toBe(`push.due.v1.batch.${data.projectId}.${notification}-12-3-2`);
  expect(scheduleSubject(batchKey(id), 2)).toBe(`push.sched.v1.${notification}-12-3-2.2`);
});

test.each([
  [0, 1],
  [1, 1],
  [15, 1],
  [16, 2],
  [500, 32],
  [1_000, unitsOfBatch],
  [10_000, unitsOfBatch],
])("a batch of %i devices takes %i places", (devices, places) => {
  expect(unitsOf(devices)).toBe(places);
});
