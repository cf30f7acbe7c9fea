import { type DeviceId, type ProjectId, pushTokenHash } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { assign, planOf, wantedKeys } from "./resolve-sends.ts";

const one = "dev_06bq4ghm31tz5d2ns8y7k9w0ac" as DeviceId;
const two = "dev_06bq4ghm31tz5d2ns8y7k9w0ad" as DeviceId;
const [a, b] = ["prj_a", "prj_b"] as [ProjectId, ProjectId];

const planned = (projectId: ProjectId, ...targets: string[]) => planOf({ projectId, targets });

describe("the keys of small sends", () => {
  test("are grouped by project, each once", () => {
    const plans = [
      planned(a, one, "token:x", "metadata:plan=pro"),
      planned(b, one),
      planned(a, two, "user:ada", `device:${one}`, "metadata:plan=pro", "identifiers:os=17"),
    ];
    expect(wantedKeys(plans)).toEqual([
      { projectId: a, ids: [one, two], hashes: [pushTokenHash("x")], facets: ["m:plan=pro", "u:ada", "i:os=17"] },
      { projectId: b, ids: [one], hashes: [], facets: [] },
    ]);
  });

  test.each(["all", "news", "topic:news", "condition:'a' in topics", `metadata:bio=${"x".repeat(300)}`, "what:is"])(
    "is nothing for %s: that goes the way of large sends",
    (target) => {
      expect(planned(a, one, target)).toBeUndefined();
      expect(wantedKeys([planned(a, one, target)])).toEqual([]);
    },
  );

  test("exclude what no device can have", () => {
    const plan = planned(a, "metadata:a..b=1", `metadata:$where=${"x".repeat(300)}`);
    expect(wantedKeys([plan])).toEqual([{ projectId: a, ids: [], hashes: [], facets: ["m:a..b=1"] }]);
  });
});

describe("the devices of a send", () => {
  const rows = new Map([
    [one as string, [{ _id: one }]],
    ["m:plan=pro", [{ _id: one }, { _id: two }]],
  ]);

  test("appear once each, and targets without a device are known", () => {
    const plan = planned(a, one, "metadata:plan=pro", "token:gone");
    if (!plan) throw new Error("it has no plan");
    const { devices, matched } = assign(plan, rows);
    expect(devices.map(({ _id }) => _id)).toEqual([one, two]);
    expect([...matched]).toEqual([0, 1]);
  });

  test("are empty if nothing matches", () => {
    const plan = planned(a, two);
    if (!plan) throw new Error("it has no plan");
    expect(assign(plan, rows)).toEqual({ devices: [], matched: new Set() });
  });
});
