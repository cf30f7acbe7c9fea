import { lastMessage, publish } from "@herald/bus";
import { DeliverBatchV1, DueV1, ExpandedV1, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

test("every message three times and out of order: the same final state, and each device is sent to once", async () => {
  const { bus, project, send, expansion, final, rows, simulators, pass } = dispatch;
  const projectId = await project();
  const notificationId = await send(projectId);
  await expansion(projectId, notificationId);
  simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);

  const slow = device("503");
  const partitioned = [[slow, ...devices(4)], devices(5), devices(1)];
  const expanded = { projectId, notificationId, n: 0, batches: 3, devices: 11, unmatched: [] };
  const facts = { projectId, notificationId, lane: "broadcast", platform: "ios" } as const;
  const batches = partitioned.map((some, index) => ({
    ...facts,
    batchId: `${notificationId}/0/${index}`,
    devices: some,
  }));
  const id = `${notificationId}/0/0/2`;
  const due = { kind: "batch", projectId, key: id.replaceAll("/", "-"), id } as const;

  for (const copy of ["a", "b", "c"]) {
    await publish(bus, DueV1, due, { id: `${id}/${copy}` });
    await publish(bus, ExpandedV1, expanded, { id: `${notificationId}/expanded/${copy}` });
    // The queue accepts eight batches per project.
    for (const batch of batches.toReversed())
      await eventually(() => publish(bus, DeliverBatchV1, batch, { id: `${batch.batchId}/${copy}` }));
  }
  await eventually(async () => {
    const states = (await rows(notificationId)).map(({ state }) => state);
    expect(states.sort()).toEqual(["final", "final", "final", "waiting"]);
  });
  pass(60_000);
  for (const copy of ["d", "e", "f"]) await publish(bus, DueV1, due, { id: `${id}/${copy}` });
  const first = await final(projectId, notificationId);
  expect(first).toMatchObject({ status: "completed", counts: { devices: 11, accepted: 11 } });

  // Published again after everything is final.
  for (const batch of batches)
    await eventually(() => publish(bus, DeliverBatchV1, batch, { id: `${batch.batchId}/late` }));
  await publish(bus, ExpandedV1, { ...expanded, batches: 7 }, { id: `${notificationId}/expanded/late` });
  await publish(bus, DueV1, due, { id: `${id}/late` });
  const subject = ExpandedV1.subject(expanded);
  await eventually(async () => expect(await lastMessage(bus, "PUSH_CMD", subject, ExpandedV1)).toBeUndefined());
  // A later notification on the same subjects is final, so the messages before it were handled, too.
  const after = await send(projectId);
  await dispatch.partition(projectId, after, [devices(1), devices(1), devices(1), devices(1)]);
  await final(projectId, after);

  expect(await final(projectId, notificationId)).toEqual(first);
  for (const { token } of partitioned.flat())
    expect(simulators.pushes({ token, status: 200 }), token.slice(0, 6)).toHaveLength(1);
  expect(
    await lastMessage(bus, "PUSH_CMD", SendV1.subject({ projectId, notificationId } as SendV1), SendV1),
  ).toBeUndefined();
});
