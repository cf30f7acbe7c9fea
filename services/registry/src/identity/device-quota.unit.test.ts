import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { createDeviceQuota } from "./device-quota.ts";

const projectId = newProjectId(new Date());

/** The quota of a project with `stored` devices. `state.counts`: how often they were counted. */
const quotaOf = (max: number, stored: number) => {
  const state = { stored, counts: 0, at: 1_000_000, own: undefined as number | undefined };
  const quota = createDeviceQuota({
    max,
    ownLimit: async () => state.own,
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

test("a project may have devices up to its quota, however they were counted", async () => {
  const { state, take } = quotaOf(5, 3);
  expect([await take(), await take(), await take(), await take()]).toEqual([true, true, false, false]);
  expect(state.counts).toBe(1);
});

test("devices that are taken at the same moment share the first count, and none goes beyond the quota", async () => {
  const { state, take } = quotaOf(5, 3);
  const taken = await Promise.all([take(), take(), take(), take()]);
  expect(taken.filter(Boolean)).toHaveLength(2);
  expect(state.counts).toBe(1);
});

test("a second after a deletion there is room for another device", async () => {
  const { state, take } = quotaOf(5, 5);
  expect(await take()).toBe(false);
  state.stored = 4;
  expect(await take()).toBe(false);
  state.at += 1_000;
  expect(await take()).toBe(true);
  expect(await take()).toBe(false);
});

test("far from the quota registrations count no devices", async () => {
  const { state, take } = quotaOf(1_000_000, 7);
  for (let n = 0; n < 100; n++) expect(await take()).toBe(true);
  expect(state.counts).toBe(1);
  state.at += 600_000;
  expect(await take()).toBe(true);
  expect(state.counts).toBe(2);
});

test("near the quota devices of other replicas count", async () => {
  const { state, take } = quotaOf(100, 95);
  expect(await take()).toBe(true);
  state.stored = 100;
  state.at += 10_000;
  await take();
  expect(await take()).toBe(false);
});

test("a limit of the project's own goes before the default", async () => {
  const { state, take } = quotaOf(100, 5);
  state.own = 6;
  expect([await take(), await take()]).toEqual([true, false]);
});
