import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import { type Load, sendSurely, startLoad } from "./harness/load.ts";
import type { Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { payloadOf } from "./harness/simulators.ts";
import { type ServiceName, type System, startSystem, tellOnFailure } from "./harness/system.ts";

const audience = 1_000;
/** The longest ack wait, after which a batch of a dead process is given to another, and some time to send it. */
const recoveryMs = 90_000;

let system: System;
let load: Load | undefined;
beforeAll(async () => {
  system = await startSystem();
});
afterAll(async () => {
  await load?.stop().catch(() => {});
  await system?.stop();
});
tellOnFailure(() => system);

/** When a service dies: as soon as a broadcast is accepted, or when its first pushes are answered. */
const moments = ["accepted", "arriving"] as const;
/** Dispatch and registry first: what they held comes back after the ack wait, which the others' deaths pass. */
const victims: readonly ServiceName[] = ["dispatch", "registry", "gateway", "analytics"];

/** A broadcast in which services die, all in the same moment; they are back when it returns. */
async function broadcastAndKill(project: Project, moment: (typeof moments)[number], names: readonly ServiceName[]) {
  const id = await sendSurely(project, { title: `Death of ${names.join(", ")}`, targets: ["everyone"] });
  if (moment === "arriving") {
    const follow = system.simulators.follow();
    await eventually(
      async () => expect((await follow()).map((push) => payloadOf(push).notification_id)).toContain(id),
      { timeoutMs: 60_000 },
    );
  }
  await Promise.all(names.map((name) => system.services[name].kill()));
  await system.ready();
  return id;
}

test("kill -9 of every service in the middle of sends loses nothing, and marks what may have come twice", async () => {
  const project = await system.project();
  await seed(system, project, audience, { prefix: "b0b0", topics: ["everyone"] });
  await system.simulators.script([{ provider: "apns", tokenPrefix: "b0b0", delayMs: 100 }]);
  load = startLoad(system, project, await seed(system, project, 20, { prefix: "51" }));
  const broadcasts: string[] = [];

  for (const moment of moments)
    for (const victim of victims) broadcasts.push(await broadcastAndKill(project, moment, [victim]));
  broadcasts.push(await broadcastAndKill(project, "arriving", victims));
  await load.stop();

  const promised = [...broadcasts.map((id) => ({ id, devices: audience })), ...load.promised];
  const { repeated, deliveries, ...broken } = await checkInvariants(system, project, promised, {
    timeoutMs: recoveryMs,
    opened: load.opened,
  });
  expect(broken).toEqual(nothingBroken);
  expect(deliveries).toBe(broadcasts.length * audience + load.promised.length);
  // A dispatch that dies can repeat what it had in flight, and nothing else can.
  expect(repeated).toBeLessThanOrEqual((moments.length + 1) * audience);
});
