import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { projectOf } from "./delivery-batch.ts";

const id = newProjectId(new Date());

test.each([
  ["an id", { projectId: id }, id],
  ["a text in its place", { projectId: "hpt_a-secret-in-the-wrong-field" }, undefined],
  ["an object in its place", { projectId: { $ne: null } }, undefined],
  ["none", {}, undefined],
  ["a list", [id], undefined],
  ["null", null, undefined],
])("the project of a message with %s, as logs have it", (_, data, project) => {
  expect(projectOf({ parsed: { ok: true, data } })).toBe(project);
});

test("what could not be read has none", () => {
  expect(projectOf({ parsed: { ok: false, detail: "the body is not JSON" } })).toBeUndefined();
});
