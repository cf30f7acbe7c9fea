import { startBeside } from "../harness/beside.ts";
import { movableClock } from "../harness/movable-clock.ts";
import { apnsToken } from "../harness/project.ts";
import { registerAll } from "../harness/register-all.ts";
import type { System } from "../harness/system.ts";
import type { Fixture } from "./row.ts";

export const hour = 3_600_000;

/** A system with a clock that moves, and two replicas of dispatch. */
export const zoned: Fixture<{ readonly system: System; readonly clock: ReturnType<typeof movableClock> }> = {
  open: async ({ start, defer }) => {
    const clock = movableClock();
    const system = await start({ env: clock.env });
    const beside = await startBeside(system, "dispatch");
    defer(() => beside.stop());
    await beside.ready();
    return { system, clock };
  },
};

/**
 * A project with `perZone` iPhones of each time zone that follow the topic `world`. `base`: a full hour within the next two of the clock.
 */
export const startZones = async (
  system: System,
  now: Date,
  name: string,
  { zones, perZone }: { readonly zones: readonly string[]; readonly perZone: number },
) => {
  const base = Math.ceil((now.getTime() + hour) / hour) * hour;
  const project = await system.project(name);
  const devices = zones.flatMap((zone) =>
    Array.from({ length: perZone }, () => ({
      platform: "ios" as const,
      token: apnsToken(),
      topics: ["world"],
      identifiers: { current_time_zone: zone },
    })),
  );
  await registerAll(project, devices);
  return { base, project, devices };
};
