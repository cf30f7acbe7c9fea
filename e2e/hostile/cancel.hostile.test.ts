import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Beside, startBeside } from "../harness/beside.ts";
import { readMetrics } from "../harness/metrics.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";

/** Pushes in flight per process: one chunk, so that many chunks begin while a notification is sent. */
const inFlight = 50;
const env = { HERALD_DISPATCH_IN_FLIGHT: String(inFlight) };

let system: System;
let other: Beside;
/** The metrics URLs of both replicas. */
let metrics: readonly string[];
beforeAll(async () => {
  system = await startSystem({ env });
  const port = await freePort();
  other = await startBeside(system, "dispatch", { env: { ...env, HERALD_METRICS_PORT: String(port) } });
  await other.ready();
  metrics = [system.services.dispatch.metrics, `http://127.0.0.1:${port}/metrics`];
});
afterAll(async () => {
  await other?.stop();
  await system?.stop();
});
logOnFailure(() => system);

/** The number of batches that a replica is sending. */
const batchesOf = async (url: string): Promise<number> => {
  const text = await readMetrics(url);
  return Number(/^herald_bus_in_flight\{[^}]*durable="dispatch-broadcast-ios"[^}]*\} (\S+)$/m.exec(text)?.[1] ?? 0);
};

test("after a cancel's response, no chunk begins on either of two replicas", async ({ task }) => {
  const project = await system.project("Two replicas");
  const devices = scale(6_000, 3_000);
  await seed(system, project, devices, { topics: ["everyone"] });
  // Long enough that pushes which begin after the answer to the cancel also end after it.
  const answered = { delayMs: 300 };
  await system.simulators.script([answered]);
  const after: number[] = [];
  const ms: number[] = [];
  const rounds = scale(10, 2);
  for (let round = 0; round < rounds; round++) {
    const { id } = await project.send({ title: "To everyone", targets: ["everyone"] });
    const pushes = async () =>
      (await system.simulators.pushes()).filter((one) => payloadOf(one).notification_id === id);
    await eventually(async () => {
      for (const url of metrics) expect(await batchesOf(url)).toBeGreaterThan(0);
      expect(await pushes()).not.toEqual([]);
    });
    expectStatus(await project.call(`DELETE /notifications/${id}`), 200, 202);
    const at = Date.now();
    const { status, counts } = await project.final(id);
    const late = (await pushes()).filter((one) => Date.parse(one.at) > at);
    expect([status, counts.accepted + counts.cancelled]).toEqual(["cancelled", devices]);
    expect(counts.cancelled).toBeGreaterThan(0);
    after.push(late.length);
    ms.push(Math.max(0, ...late.map((one) => Date.parse(one.at) - at)));
  }
  show(task, {
    replicas: metrics.length,
    cancels: rounds,
    "devices of each": devices,
    "may be on their way": inFlight * metrics.length,
    "answered after the cancel, at most": Math.max(...after),
    "ms after it, at most": Math.max(...ms),
  });
  // Only pushes that had begun may complete, at most those in flight.
  expect(Math.max(...after)).toBeLessThanOrEqual(inFlight * metrics.length);
});
