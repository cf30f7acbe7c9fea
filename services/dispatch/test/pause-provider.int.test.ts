import { sendRequest } from "@herald/bus";
import { type ProjectId, ProviderPausedV1, ProviderResumedV1, providerRequests } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const refuse = { provider: "apns", status: 403, reason: "InvalidProviderToken" } as const;

/** Sends a notification of a project whose credential APNs refuses, and waits until all of its devices wait. */
const paused = async () => {
  const { project, send, partition, simulators, rows } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([refuse]);
  await partition(projectId, id, [devices(120), devices(30)]);
  await untilPaused(projectId);
  await eventually(async () => {
    const waiting = (await rows(id)).filter(({ state, paused: waits }) => state === "waiting" && waits);
    expect(waiting.reduce((sum, { tally }) => sum + tally.devices, 0)).toBe(150);
  });
  return { projectId, id, view: () => viewOf(projectId) };
};

const viewOf = (projectId: ProjectId) =>
  sendRequest(dispatch.bus, providerRequests.get, { projectId, provider: "apns" });

/** Lets the seconds pass after which a second push decides. */
const untilPaused = (projectId: ProjectId) =>
  eventually(async () => {
    const { status } = await viewOf(projectId);
    if (status !== "paused") dispatch.pass(3_000);
    expect(status).toBe("paused");
  });
const credentials = () => dispatch.database.client.db(dispatch.database.name).collection("credentials");
const total = () => dispatch.simulators.stats().apns?.total ?? 0;

test("a refused credential pauses that project's provider, and new settings send what waited", async () => {
  const { simulators, get, final, lastEvent, putProvider, project, send, partition, deliveries } = dispatch;
  const { projectId, id, view } = await paused();
  expect(await view()).toMatchObject({
    status: "paused",
    paused_reason: "InvalidProviderToken",
    paused_detail: expect.stringContaining("key_id and team_id"),
    next_trial_at: expect.any(String),
  });
  expect(await get(projectId, id)).toMatchObject({ status: "sending", counts: { devices: 150, pending: 150 } });
  await eventually(async () =>
    expect(await lastEvent(projectId, ProviderPausedV1)).toMatchObject({
      provider: "apns",
      provider_reason: "InvalidProviderToken",
      detail: expect.stringContaining("key_id and team_id"),
    }),
  );
  // An unproven credential is used for one chunk only, so that APNs does not refuse a wrong one a thousand times.
  const refused = total();
  expect(refused).toBeLessThanOrEqual(100 + 1);

  simulators.script([]);
  const other = await project();
  const beside = await send(other);
  await partition(other, beside, [devices(1)]);
  expect(await final(other, beside)).toMatchObject({ counts: { accepted: 1 } });
  expect(simulators.stats().apns?.total).toBe(refused + 1);

  expect(await putProvider(projectId)).toMatchObject({ status: "active" });
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 150, accepted: 150 } });
  // A refused credential does not count as an attempt, because the provider did not check the devices.
  for (const delivery of await deliveries(projectId, id)) expect(delivery).toMatchObject({ attempts: 1 });
  await eventually(async () =>
    expect(await lastEvent(projectId, ProviderResumedV1)).toMatchObject({ provider: "apns" }),
  );
});

test("a paused batch is checked again without a push, and expires in time", async () => {
  const { pass, get, final, rows } = dispatch;
  const { projectId, id } = await paused();
  // Trials have a test of their own: this pause has none, like that of settings that cannot be used.
  await credentials().updateOne({ projectId }, { $unset: { "paused.nextTrialAt": "" } });
  const refused = total();
  const before = (await rows(id)).length;
  pass(301_000);
  await eventually(async () => {
    const waiting = (await rows(id)).filter(({ state }) => state === "waiting");
    expect(waiting.length).toBeGreaterThan(0);
    for (const { dueAt } of waiting) expect(dueAt?.getTime()).toBeGreaterThan(dispatch.now().getTime() + 200_000);
  });
  expect(await rows(id)).toHaveLength(before);
  expect(await get(projectId, id)).toMatchObject({ counts: { pending: 150 } });
  pass(86_500_000);
  expect(await final(projectId, id)).toMatchObject({ status: "expired", counts: { devices: 150, expired: 150 } });
  expect(await dispatch.deliveries(projectId, id)).toEqual(
    expect.arrayContaining([expect.objectContaining({ status: "expired", reason: "provider-misconfigured" })]),
  );
  expect(total()).toBe(refused);
});

test("settings that are deleted settle what waited for them", async () => {
  const { final, bus } = dispatch;
  const { projectId, id, view } = await paused();
  await sendRequest(bus, providerRequests.delete, { projectId, provider: "apns" });
  expect(await final(projectId, id)).toMatchObject({ failures: { "provider-not-configured": 150 } });
  await expect(view()).rejects.toMatchObject({ code: "provider-not-found" });
});

test("settings that are refused again pause again", async () => {
  const { putProvider, final, simulators, rows } = dispatch;
  const { projectId, id, view } = await paused();
  await putProvider(projectId);
  await untilPaused(projectId);
  await eventually(async () => {
    expect(await view()).toMatchObject({ status: "paused" });
    const states = (await rows(id)).map(({ state }) => state);
    expect(states.filter((state) => state === "started" || state === "settled")).toEqual([]);
  });
  simulators.script([]);
  await putProvider(projectId);
  expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 150 } });
});

test("one refusal pauses nothing: the pushes wait some seconds, and one with a new token is accepted", async () => {
  const { project, send, partition, simulators, final, deliveries, lastEvent } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ ...refuse, times: 1 }]);
  await partition(projectId, id, [devices(1), devices(1)]);
  await eventually(() => expect(total()).toBeGreaterThan(0));
  const [first] = simulators.pushes();
  await eventually(async () => {
    const row = (await dispatch.rows(id)).find(({ state, results }) => state === "final" && results?.length);
    // The trace of the device that was refused says so; it used no attempt.
    expect(row?.results).toContainEqual(
      expect.objectContaining({ status: "deferred", providerReason: "InvalidProviderToken", attempts: 0 }),
    );
  });
  expect(first).toMatchObject({ status: 403 });
  await eventually(async () => {
    dispatch.pass(3_000);
    expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: 2 });
  });
  expect(await final(projectId, id)).toMatchObject({ status: "completed" });
  for (const delivery of await deliveries(projectId, id)) expect(delivery).toMatchObject({ attempts: 1 });
  expect(total()).toBe(3);
  expect(await viewOf(projectId)).toMatchObject({ status: "active" });
  await expect(lastEvent(projectId, ProviderPausedV1)).resolves.toBeUndefined();
});

test("while it is paused, one waiting push is tried after 1, 2, 5 and 15 minutes, and success resumes it", async () => {
  const { simulators, final, lastEvent, rows, deliveries } = dispatch;
  const { projectId, id, view } = await paused();
  let refused = total();
  for (const minutes of [1, 2, 5, 15, 15]) {
    const { next_trial_at: next = "" } = await view();
    const until = Date.parse(next) - dispatch.now().getTime();
    expect(Math.round(until / 60_000)).toBe(minutes);
    dispatch.pass(until - 10_000);
    expect(total()).toBe(refused);
    dispatch.pass(14_000);
    await eventually(async () => expect((await view()).next_trial_at).not.toBe(next));
    await eventually(() => expect(total()).toBe(refused + 1));
    // Every device waits again, those that only looked in the rows they had.
    await eventually(async () => {
      const waiting = (await rows(id)).filter(({ state, paused: waits }) => state === "waiting" && waits);
      expect(waiting.reduce((sum, { tally }) => sum + tally.devices, 0)).toBe(150);
      for (const { dueAt } of waiting) expect(dueAt?.getTime()).toBeGreaterThan(dispatch.now().getTime());
    });
    refused = total();
  }
  simulators.script([]);
  dispatch.pass(15 * 60_000);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 150 } });
  expect(await view()).toMatchObject({ status: "active" });
  for (const delivery of await deliveries(projectId, id)) expect(delivery).toMatchObject({ attempts: 1 });
  await eventually(async () =>
    expect(await lastEvent(projectId, ProviderResumedV1)).toMatchObject({ reason: "accepted-again" }),
  );
});

test("if no push waits, the first one after the time is the trial, and a push before it only waits", async () => {
  const { simulators, send, partition, final, cancel } = dispatch;
  const { projectId, id, view } = await paused();
  await cancel(projectId, id);
  expect(await final(projectId, id)).toMatchObject({ status: "cancelled" });
  const early = await send(projectId);
  await partition(projectId, early, [devices(1)]);
  const refused = total();
  simulators.script([]);
  await eventually(async () => expect((await dispatch.rows(early)).some(({ paused: waits }) => waits)).toBe(true));
  expect(total()).toBe(refused);
  await cancel(projectId, early);
  await final(projectId, early);
  dispatch.pass(61_000);
  const late = await send(projectId);
  await partition(projectId, late, [devices(3)]);
  expect(await final(projectId, late)).toMatchObject({ counts: { accepted: 3 } });
  expect(await view()).toMatchObject({ status: "active" });
});

test("a process that dies with a claimed trial does not end the trials", async () => {
  const { simulators, final } = dispatch;
  const { projectId, id } = await paused();
  const refused = total();
  // What such a process leaves behind.
  const nextTrialAt = new Date(dispatch.now().getTime() + 120_000);
  await credentials().updateOne({ projectId }, { $set: { "paused.nextTrialAt": nextTrialAt, "paused.trials": 1 } });
  simulators.script([]);
  dispatch.pass(64_000);
  await eventually(async () => {
    const waiting = (await dispatch.rows(id)).filter(({ state }) => state === "waiting");
    for (const { dueAt } of waiting) expect(dueAt?.getTime()).toBeGreaterThanOrEqual(nextTrialAt.getTime());
  });
  expect(total()).toBe(refused);
  dispatch.pass(60_000);
  expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 150 } });
});

test("of two processes one makes the trial", async () => {
  const { simulators, final, rows } = dispatch;
  const second = createApp(dispatch.config, { now: dispatch.now, sweepEveryMs: 200 });
  await second.start();
  try {
    const { projectId, id, view } = await paused();
    const refused = total();
    const { next_trial_at: next } = await view();
    dispatch.pass(64_000);
    await eventually(async () => expect((await view()).next_trial_at).not.toBe(next));
    await eventually(() => expect(total()).toBe(refused + 1));
    await eventually(async () => {
      const waiting = (await rows(id)).filter(({ state, paused: waits }) => state === "waiting" && waits);
      expect(waiting.reduce((sum, { tally }) => sum + tally.devices, 0)).toBe(150);
      for (const { dueAt } of waiting) expect(dueAt?.getTime()).toBeGreaterThan(dispatch.now().getTime());
    });
    expect(total()).toBe(refused + 1);
    simulators.script([]);
    dispatch.pass(124_000);
    expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 150 } });
  } finally {
    await second.stop();
  }
});
