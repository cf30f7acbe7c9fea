import { openBucket, publishEvent, sendRequest } from "@herald/bus";
import { ProvidersRecord, projectProvidersKey, providerRequests } from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

test("a deleted project takes its credentials, notifications and ledger with it, and no other project's", async () => {
  const { project, send, partition, final, get, bus, rows, pass } = dispatch;
  const [gone, kept] = [await project(), await project()];
  const sent = async (projectId: typeof gone) => {
    const id = await send(projectId);
    await partition(projectId, id, [devices(2)]);
    await final(projectId, id);
    return id;
  };
  const lost = [await sent(gone), await sent(gone)];
  const other = await sent(kept);
  // One of its batches is still in the queue.
  const half = await send(gone);
  await partition(gone, half, [devices(1)], { of: 2 });
  await eventually(async () => expect(await rows(half)).toMatchObject([{ state: "final" }]));

  const at = new Date();
  for (const copy of ["a", "b"])
    await publishEvent(bus, {
      id: `${gone}/deleted/${copy}`,
      event: "ProjectDeletedV1",
      subject: gone,
      at,
      data: { project_id: gone, at: at.toISOString() },
    });

  for (const id of [...lost, half])
    await eventually(async () => {
      await expect(get(gone, id)).rejects.toMatchObject({ code: "notification-not-found" });
      expect(await rows(id)).toEqual([]);
    });
  await expect(sendRequest(bus, providerRequests.get, { projectId: gone, provider: "apns" })).rejects.toMatchObject({
    code: "provider-not-found",
  });
  expect(await openBucket(bus, "push_providers", ProvidersRecord).get(projectProvidersKey(gone))).toBeUndefined();

  const hands = await operateBroker(dispatch.broker);
  await eventually(async () => expect(await hands.left("PUSH_EVENTS", "dispatch-delete-project")).toBe(0));
  // Longer than a process believes what it read of a notification.
  pass(1_000);
  await partition(gone, half, [devices(1)], { from: 1, of: 2 });
  await eventually(async () => expect(await hands.left("PUSH_DELIVER", "dispatch-broadcast-ios")).toBe(0));
  expect(await rows(half)).toEqual([]);
  await hands.close();
  // It was being handled meanwhile, and was stored late.
  const late = await send(gone);
  await eventually(() => get(gone, late));
  pass(60_000);
  await eventually(() => expect(get(gone, late)).rejects.toMatchObject({ code: "notification-not-found" }));

  expect(await get(kept, other)).toMatchObject({ counts: { accepted: 2 } });
  expect(await rows(other)).toHaveLength(1);
  expect(await sendRequest(bus, providerRequests.get, { projectId: kept, provider: "apns" })).toMatchObject({
    status: "active",
  });
});
