import type { DeliveryReason } from "@herald/contracts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createResultTable, type DeviceResult } from "./result-table.ts";

const accepted: DeviceResult = { status: "accepted", attempts: 1, possibleRepeat: false };
const failed: DeviceResult = {
  status: "failed",
  reason: "unregistered",
  providerReason: "Unregistered",
  attempts: 1,
  possibleRepeat: false,
};

const tableOf = (results: readonly DeviceResult[]) => {
  const table = createResultTable(results.length);
  for (const [device, result] of results.entries()) table.put(device, result);
  return table;
};

const someResult: fc.Arbitrary<DeviceResult> = fc.record({
  status: fc.constantFrom("accepted", "failed", "expired", "cancelled", "deferred"),
  reason: fc.constantFrom<DeliveryReason | undefined>(undefined, "unregistered", "payload-invalid"),
  providerReason: fc.constantFrom(undefined, "undefined", "null", "", "a b", "a"),
  attempts: fc.integer({ min: 0, max: 2 }),
  possibleRepeat: fc.boolean(),
});

test("each device has its result, equal results are stored once, and the sums count the devices", () => {
  fc.assert(
    fc.property(fc.array(someResult, { maxLength: 150 }), (results) => {
      const table = tableOf(results);
      expect([...table.resultOf].map((index) => table.results[index])).toEqual(results);
      expect(new Set(table.results.map((result) => JSON.stringify(result))).size).toBe(table.results.length);

      const of = (status: string) => results.filter((result) => result.status === status).length;
      const { tally, failures } = table.sums();
      expect(tally).toEqual({
        devices: results.length - of("deferred"),
        accepted: of("accepted"),
        failed: of("failed"),
        expired: of("expired"),
        cancelled: of("cancelled"),
      });
      const reasons = results.flatMap(({ status, reason }) => (status === "failed" && reason ? [reason] : []));
      expect(failures).toEqual(
        Object.fromEntries([...new Set(reasons)].map((each) => [each, reasons.filter((one) => one === each).length])),
      );
    }),
  );
});

test("a result that differs in one field is stored separately", () => {
  const differing: DeviceResult[] = [
    failed,
    { ...failed, status: "expired" },
    { ...failed, reason: "payload-invalid" },
    { ...failed, providerReason: "Gone" },
    { ...failed, providerReason: undefined },
    { ...failed, attempts: 2 },
    { ...failed, possibleRepeat: true },
  ];
  for (const other of differing.slice(1)) {
    const table = tableOf([failed, other, failed, failed]);
    expect(table.results).toEqual([failed, other]);
    expect([...table.resultOf]).toEqual([0, 1, 0, 0]);
  }
  expect(tableOf(differing).results).toEqual(differing);
});

test("a failure without a reason is counted, but under no reason", () => {
  const { reason: _, ...bare } = failed;
  expect(tableOf([bare, failed]).sums()).toEqual({
    tally: { devices: 2, accepted: 0, failed: 2, expired: 0, cancelled: 0 },
    failures: { unregistered: 1 },
  });
});

test("past 200 different results the provider's words are left out, and no device is lost", () => {
  const results = Array.from({ length: 500 }, (_, at): DeviceResult => ({ ...failed, providerReason: `word ${at}` }));
  const table = tableOf([...results, accepted, results[0] ?? failed, results[499] ?? failed]);
  expect(table.results).toHaveLength(202);
  expect(table.results[199]).toEqual({ ...failed, providerReason: "word 199" });
  expect(table.results[200]).toEqual({ ...failed, providerReason: undefined });
  expect(table.results[201]).toEqual(accepted);
  expect([...table.resultOf.slice(498)]).toEqual([200, 200, 201, 0, 200]);
  expect(table.sums()).toEqual({
    tally: { devices: 503, accepted: 1, failed: 502, expired: 0, cancelled: 0 },
    failures: { unregistered: 502 },
  });
});
