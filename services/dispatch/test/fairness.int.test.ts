import { batchLimits } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest({ HERALD_DISPATCH_BATCHES: "3" });
});
afterAll(() => dispatch.stop());

test("a project whose provider is slow takes its share, and another's batches pass it", async () => {
  const { project, send, partition, final, get, simulators, rows } = dispatch;
  simulators.script([{ provider: "apns", tokenPrefix: "510e", hang: true }]);
  const slow = await project();
  const hanging = await send(slow);
  const batches = Array.from({ length: 6 }, () => devices(batchLimits.devices, "510e"));
  await partition(slow, hanging, batches);
  await eventually(async () => expect(await rows(hanging)).toHaveLength(2));

  const quick = await project();
  const id = await send(quick);
  await partition(quick, id, [devices(3), devices(3), devices(3), devices(3)]);
  expect(await final(quick, id)).toMatchObject({ counts: { accepted: 12 } });

  // The slow project shares the lane and platform, with six earlier batches: two are being sent, the others wait for their turn.
  expect(await rows(hanging)).toHaveLength(2);
  expect(await get(slow, hanging)).toMatchObject({
    counts: { devices: 6 * batchLimits.devices, pending: 6 * batchLimits.devices },
  });
  // Ends the requests that hang, so that the stop need not wait for their timeout.
  await simulators.stop();
});
