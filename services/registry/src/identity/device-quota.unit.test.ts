import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { createDeviceQuota } from "./device-quota.ts";

const projectId = newProjectId(new Date());

/** A project with so many devices, and how often they were counted. */
const quotaOf = (most: number, stored: number) => {
  const state = { stored, counts: 0, at: 1_000_000 };
  const quota = createDeviceQuota({
    most,
    countUpTo: async (_, limit) => {
      state.counts++;
      return Math.min(state.stored, limit);
    },
    now: () => new Date(state.at),
  });
  const take = async (): Promise<boolean> => {
    try {
      await quota.take(projectId);
    } catch {
      return false;
    }
    state.stored++;
    return true;
  };
  return { state, take };
};

test("a project has as many devices as it may, however they were counted", async () => {
  const { state, take } = quotaOf(5, 3);
  expect([await take(), await take(), await take(), await take()]).toEqual([true, true, false, false]);
  expect(state.counts).toBe(1);
});

test("where devices were deleted there is room again a second later", async () => {
  const { state, take } = quotaOf(5, 5);
  expect(await take()).toBe(false);
  state.stored = 4;
  expect(await take()).toBe(false);
  state.at += 1_000;
  expect(await take()).toBe(true);
  expect(await take()).toBe(false);
});

test("far from the quota registrations cost no counting", async () => {
  const { state, take } = quotaOf(1_000_000, 7);
  for (let n = 0; n < 100; n++) expect(await take()).toBe(true);
  expect(state.counts).toBe(1);
  state.at += 600_000;
  expect(await take()).toBe(true);
  expect(state.counts).toBe(2);
});

test("what other replicas added is seen near the quota", async () => {
  const { state, take } = quotaOf(100, 95);
  expect(await take()).toBe(true);
  state.stored = 100;
  state.at += 10_000;
  await take();
  expect(await take()).toBe(false);
});
