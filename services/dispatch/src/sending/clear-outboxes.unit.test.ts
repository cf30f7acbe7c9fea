import { newProjectId, type ProjectId } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createClearOutboxes } from "./clear-outboxes.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const log = createLogger({ service: "test", level: "silent" });
const [one, other] = [newProjectId(new Date()), newProjectId(new Date())];

const recorder = (fail = false) => {
  const cleared: [ProjectId, readonly string[]][] = [];
  const clearOutboxes = async (projectId: ProjectId, ids: readonly string[]) => {
    cleared.push([projectId, ids]);
    if (fail) throw new Error("away");
  };
  return { cleared, outboxes: createClearOutboxes({ clearOutboxes }, log) };
};

test("rows that come close together are cleared together, each project's by themselves", async () => {
  const { cleared, outboxes } = recorder();
  outboxes.add({ projectId: one, _id: "a" });
  outboxes.add({ projectId: other, _id: "b" });
  outboxes.add({ projectId: one, _id: "c" });
  expect(cleared).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(cleared).toEqual([
    [one, ["a", "c"]],
    [other, ["b"]],
  ]);
});

test("a hundred rows do not wait", async () => {
  const { cleared, outboxes } = recorder();
  for (let row = 0; row < 100; row++) outboxes.add({ projectId: one, _id: String(row) });
  expect(cleared.map(([, ids]) => ids.length)).toEqual([100]);
});

test("a stop clears what waits, and a database that is away is the sweep's to mend", async () => {
  const { cleared, outboxes } = recorder(true);
  outboxes.add({ projectId: one, _id: "a" });
  await outboxes.stop();
  expect(cleared).toEqual([[one, ["a"]]]);
});
