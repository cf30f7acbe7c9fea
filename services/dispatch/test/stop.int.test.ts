import { batchLimits } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest({ HERALD_DISPATCH_BATCHES: "1" });
});
afterAll(() => dispatch.stop());

test("a stop finishes the pushes in progress, and the next start sends the rest, each once", async () => {
  const { project, send, partition, final, simulators, rows, app, config, deliveries } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", status: 200, delayMs: 1_500 }]);
  await partition(
    projectId,
    id,
    Array.from({ length: 2 }, () => devices(batchLimits.devices)),
  );
  await eventually(async () => expect(await rows(id)).toHaveLength(1));

  expect(await app.stop()).toBe(true);
  const left = await rows(id);
  expect(left.map(({ state }) => state)).toEqual(["final"]);
  expect(simulators.stats().apns?.total).toBe(batchLimits.devices);

  const all = 2 * batchLimits.devices;
  const next = createApp(config);
  await next.start();
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: all, accepted: all } });
  expect(simulators.stats().apns?.total).toBe(all);
  for (const delivery of await deliveries(projectId, id)) expect(delivery.possible_repeat).toBe(false);
  expect(await next.stop()).toBe(true);
});
