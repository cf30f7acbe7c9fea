import { newProjectId, userKey } from "@herald/contracts";
import { expect, test } from "vitest";
import { erasePayload } from "./erase-payload.ts";

const projectId = newProjectId(new Date());
const erase = (value: unknown) => erasePayload(JSON.stringify(value), projectId, userKey(projectId, "ann"));

test("removes the user's id wherever it is, and nothing else", () => {
  const event = { data: { users: ["ann", null, "bob"], failures: [{ userId: "ann", reason: "moved" }], ann: "an" } };
  expect(JSON.parse(erase(event))).toEqual({
    data: { users: [null, null, "bob"], failures: [{ userId: null, reason: "moved" }], ann: "an" },
  });
});

test("a payload without the user stays the same, to the byte", () => {
  const payload = '{ "data": {"users":["bob"],  "n":1.0 } }';
  expect(erasePayload(payload, projectId, userKey(projectId, "ann"))).toBe(payload);
});

test("the same id in another project is another user", () => {
  const other = newProjectId(new Date());
  expect(erasePayload('["ann"]', other, userKey(projectId, "ann"))).toBe('["ann"]');
});
