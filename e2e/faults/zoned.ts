import { startBeside } from "../harness/beside.ts";
import { movableClock } from "../harness/movable-clock.ts";
import { apnsToken } from "../harness/project.ts";
import { registerAll } from "../harness/register-all.ts";
import type { Stage } from "./row.ts";

export const hour = 3_600_000;

/**
 * Starts a system with a clock that moves and two replicas of dispatch, and a project with `perZone` iPhones of each time zone that follow
 * the topic `world`. `base`: a full hour within the next two.
 */
export const startZoned = async (
  { start, defer }: Stage,
  name: string,
  { zones, perZone }: { readonly zones: readonly string[]; readonly perZone: number },
) => {
  const clock = movableClock();
  const system = await start({ env: clock.env });
  const beside = await startBeside(system, "dispatch");
  defer(() => beside.stop());
  await beside.ready();
  const base = Math.ceil((Date.now() + hour) / hour) * hour;
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
  return { clock, system, base, project, devices };
};
