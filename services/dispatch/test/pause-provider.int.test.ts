import { sendRequest } from "@herald/bus";
import { DeleteProvider, GetProvider, ProviderPausedV1, ProviderResumedV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
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
  const { project, send, partition, simulators, rows, bus } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([refuse]);
  await partition(projectId, id, [devices(120), devices(30)]);
  await eventually(async () => {
    const waiting = (await rows(id)).filter(({ state }) => state === "waiting");
    expect(waiting.reduce((sum, { tally }) => sum + tally.devices, 0)).toBe(150);
  });
  const view = () => sendRequest(bus, GetProvider, { projectId, provider: "apns" });
  return { projectId, id, view };
};

test("a refused credential pauses that project's provider, and new settings send what waited", async () => {
  const { simulators, get, final, lastEvent, putProvider, project, send, partition, deliveries } = dispatch;
  const { projectId, id, view } = await paused();
  expect(await view()).toMatchObject({ status: "paused", paused_reason: "InvalidProviderToken" });
  expect(await get(projectId, id)).toMatchObject({ status: "sending", counts: { devices: 150, pending: 150 } });
  await eventually(async () =>
    expect(await lastEvent(projectId, ProviderPausedV1)).toMatchObject({
      provider: "apns",
      provider_reason: "InvalidProviderToken",
    }),
  );
  // An unproven credential is used for one chunk only, so that APNs does not refuse a wrong one a thousand times.
  const refused = simulators.stats().apns?.total ?? 0;
  expect(refused).toBeLessThanOrEqual(50);

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
  const { simulators, pass, get, final, rows } = dispatch;
  const { projectId, id } = await paused();
  const refused = simulators.stats().apns?.total;
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
  expect(simulators.stats().apns?.total).toBe(refused);
});

test("settings that are deleted settle what waited for them", async () => {
  const { final, bus } = dispatch;
  const { projectId, id, view } = await paused();
  await sendRequest(bus, DeleteProvider, { projectId, provider: "apns" });
  expect(await final(projectId, id)).toMatchObject({ failures: { "provider-not-configured": 150 } });
  await expect(view()).rejects.toMatchObject({ code: "provider-not-found" });
});

test("settings that are refused again pause again", async () => {
  const { putProvider, final, simulators, rows } = dispatch;
  const { projectId, id, view } = await paused();
  await putProvider(projectId);
  await eventually(async () => {
    expect(await view()).toMatchObject({ status: "paused" });
    const states = (await rows(id)).map(({ state }) => state);
    expect(states.filter((state) => state === "started" || state === "settled")).toEqual([]);
  });
  simulators.script([]);
  await putProvider(projectId);
  expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 150 } });
});
