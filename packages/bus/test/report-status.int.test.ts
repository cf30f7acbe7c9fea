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
    failing: async () => failing,
    keys: { HERALD_OPEN_KEYS: ["k2", "k1"] },
    look: async () => ({ streams: [], durables: [] }),
    everyMs: 50,
  });
  const only = () => [...seen.values()][0];
  await eventually(() =>
    expect(only()).toMatchObject({ service: "dispatch", version, failing, keys: { HERALD_OPEN_KEYS: ["k2", "k1"] } }),
  );
  expect([...seen.keys()]).toEqual([`dispatch.${only()?.instance}`]);
  failing = [];
  // Each report contains the time that storing the previous one took.
  await eventually(() => expect(only()).toMatchObject({ failing: [], brokerMs: expect.any(Number) }));
  await reporting.stop();
  await eventually(() => expect(seen.size).toBe(0));
  await watching.stop();
});

test("a process whose state changes reports it at once, not at the next interval", async () => {
  const seen: StatusReport[] = [];
  const watching = openBucket(t.bus, "push_status", StatusReport).watch(
    ({ value }) => void (value && seen.push(value)),
  );
  let failing: StatusReport["failing"] = [{ check: "indexes", since: new Date().toISOString(), reason: "not yet" }];
  const reporting = reportStatus(t.bus, {
    service: "registry",
    failing: async () => failing,
    keys: { HERALD_OPEN_KEYS: ["k2", "k1"] },
    look: async () => ({ streams: [], durables: [] }),
    everyMs: 3_600_000,
  });
  await eventually(() => expect(seen.at(-1)).toMatchObject({ failing }));
  failing = [];
  await eventually(() => expect(seen.at(-1)).toMatchObject({ failing: [] }));
  await reporting.stop();
  await watching.stop();
  // A state that does not change is reported once.
  expect(seen).toHaveLength(2);
});
