import { expect, test } from "vitest";
import { type CpuProfile, topFunctions } from "./top-functions.ts";

const root = new URL("../../", import.meta.url).href;
const node = (id: number, functionName: string, url = "") => ({
  id,
  callFrame: { functionName, url, lineNumber: url === "" ? -1 : 9 },
});
const profile = (samples: number[], timeDeltas: number[]): CpuProfile => ({
  nodes: [
    node(1, "(root)"),
    node(2, "(idle)"),
    node(3, "push", `${root}services/dispatch/src/push.ts`),
    node(4, "", "node:net"),
    // The same function, called from elsewhere.
    node(5, "push", `${root}services/dispatch/src/push.ts`),
  ],
  samples,
  timeDeltas,
});

test("self time is summed by function over all profiles, without idleness", () => {
  const profiles = [profile([3, 4, 5, 2, 3], [0, 3000, 1000, 2000, 50_000]), profile([5, 1], [0, 4000])];
  expect(topFunctions(profiles, 10)).toEqual([
    { name: "push services/dispatch/src/push.ts:10", selfMs: 9, share: 0.9 },
    { name: "(anonymous) node:net:10", selfMs: 1, share: 0.1 },
    { name: "(root)", selfMs: 0, share: 0 },
  ]);
  expect(topFunctions(profiles, 1)).toHaveLength(1);
  expect(topFunctions([], 10)).toEqual([]);
});
