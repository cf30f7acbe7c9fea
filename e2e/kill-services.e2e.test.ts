import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import { type Load, sendSurely, startLoad } from "./harness/load.ts";
import type { Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { payloadOf } from "./harness/simulators.ts";
import { type ServiceName, type System, startSystem, tellOnFailure } from "./harness/system.ts";

const audience = 1_000;
/** The longest ack wait, after which a batch of a dead process is given to another, and some time to send it. */
const recoveryMs = 90_000;
/** Dispatch and registry first: what they held comes back after the ack wait, which the others' deaths pass. */
const victims: readonly ServiceName[] = ["dispatch", "registry", "gateway", "analytics"];

let system: System;
let project: Project;
let load: Load;
beforeAll(async () => {
  system = await startSystem();
  await system.simulators.script([{ provider: "apns", tokenPrefix: "b0b0", delayMs: 100 }]);
});
afterAll(() => system?.stop());
beforeEach(async () => {
  project = await system.project();
  await seed(system, project, audience, { prefix: "b0b0", topics: ["everyone"] });
  load = startLoad(system, project, await seed(system, project, 20, { prefix: "51" }));
});
afterEach(() => load.stop().catch(() => {}));
tellOnFailure(() => system);

/** A broadcast in which services end, all in the same moment: as soon as it is accepted, or when its first pushes are answered. */
async function broadcastAndEnd(
  names: readonly ServiceName[],
  { moment, signal }: { moment: "accepted" | "arriving"; signal: NodeJS.Signals },
): Promise<string> {
  const id = await sendSurely(project, { title: `${signal} to ${names.join(", ")}`, targets: ["everyone"] });
  if (moment === "arriving") {
    const follow = system.simulators.follow();
    await eventually(
      async () => expect((await follow()).map((push) => payloadOf(push).notification_id)).toContain(id),
      { timeoutMs: 60_000 },
    );
  }
  await Promise.all(names.map((name) => system.services[name].kill(signal)));
  await system.ready();
  return id;
}

async function allIsWell(broadcasts: readonly string[]): Promise<{ repeated: number }> {
  await load.stop();
  const promised = [...broadcasts.map((id) => ({ id, devices: audience })), ...load.promised];
  const report = await checkInvariants(system, project, promised, { timeoutMs: recoveryMs, opened: load.opened });
  const { repeated, deliveries, ...broken } = report;
  expect(broken).toEqual(nothingBroken);
  expect(deliveries).toBe(broadcasts.length * audience + load.promised.length);
  expect([...load.reads.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  return { repeated };
}

/** Seven deaths with their recoveries, and what is waited for before something counts as lost. */
const timeout = recoveryMs + 120_000;

test("kill -9 of every service in the middle of sends loses nothing, and marks what may have come twice", {
  timeout,
}, async () => {
  const signal = "SIGKILL";
  const broadcasts: string[] = [];
  // Once accepted, a broadcast is with dispatch, and then with registry.
  for (const victim of ["dispatch", "registry"] as const)
    broadcasts.push(await broadcastAndEnd([victim], { moment: "accepted", signal }));
  for (const victim of victims) broadcasts.push(await broadcastAndEnd([victim], { moment: "arriving", signal }));
  broadcasts.push(await broadcastAndEnd(victims, { moment: "arriving", signal }));
  const { repeated } = await allIsWell(broadcasts);
  // A dispatch that dies can repeat what it had in flight, and nothing else can: it died three times.
  expect(repeated).toBeLessThanOrEqual(3 * audience);
});

test("a restart of every service in good order loses and repeats nothing", async () => {
  const broadcasts: string[] = [];
  for (const name of victims) broadcasts.push(await broadcastAndEnd([name], { moment: "arriving", signal: "SIGTERM" }));
  expect(await allIsWell(broadcasts)).toEqual({ repeated: 0 });
});
