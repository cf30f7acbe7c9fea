import { StatusReport } from "@herald/contracts";
import { version } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBucket, reportStatus } from "../src/index.ts";
import { type BusTest, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

test("a process reports its status at intervals, and a stop removes the report", async () => {
  const seen = new Map<string, StatusReport>();
  const watching = openBucket(t.bus, "push_status", StatusReport).watch(({ key, value }) => {
    if (value) seen.set(key, value);
    else seen.delete(key);
  });
  const since = new Date().toISOString();
  let failing: StatusReport["failing"] = [{ check: "database", since, reason: "the database is unavailable" }];
  const reporting = reportStatus(t.bus, {
    service: "dispatch",
    look: async () => ({ failing, streams: [], durables: [] }),
    everyMs: 50,
  });
  const only = () => [...seen.values()][0];
  await eventually(() => expect(only()).toMatchObject({ service: "dispatch", version, failing }));
  expect([...seen.keys()]).toEqual([`dispatch.${only()?.instance}`]);
  failing = [];
  // Each report contains the time that storing the previous one took.
  await eventually(() => expect(only()).toMatchObject({ failing: [], brokerMs: expect.any(Number) }));
  await reporting.stop();
  await eventually(() => expect(seen.size).toBe(0));
  await watching.stop();
});
