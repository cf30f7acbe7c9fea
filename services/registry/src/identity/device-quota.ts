import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** Counting so many takes a few milliseconds, and most projects have fewer. */
const quicklyCounted = 10_000;
/** How old a count may be: far from the quota, near it, and where it decides. */
const maxAgeMs = { far: 600_000, near: 10_000, reached: 1_000 };
const near = 0.9;
const maxProjects = 10_000;

type Known = { count: number; at: number };

/**
 * Counts the devices that a project may have. Far below the quota that costs nothing: devices are counted every ten minutes, and
 * in between those that were added here. Replicas may exceed it together by what they add between two counts.
 */
export const createDeviceQuota = ({
  most,
  countUpTo,
  now,
}: {
  readonly most: number;
  readonly countUpTo: (projectId: ProjectId, limit: number) => Promise<number>;
  readonly now: () => Date;
}) => {
  const known = new Map<ProjectId, Known>();
  const counting = new Map<ProjectId, Promise<void>>();

  const keep = (projectId: ProjectId, count: number, at: number) => {
    known.delete(projectId);
    known.set(projectId, { count, at });
    const [oldest] = known.size > maxProjects ? known.keys() : [];
    if (oldest !== undefined) known.delete(oldest);
  };
  const recount = (projectId: ProjectId): Promise<void> => {
    const underWay =
      counting.get(projectId) ??
      countUpTo(projectId, most)
        .then((count) => keep(projectId, count, now().getTime()))
        .finally(() => counting.delete(projectId));
    counting.set(projectId, underWay);
    return underWay;
  };

  return {
    /** Takes room for one more device. @throws HeraldError `device-quota-exceeded` when there is none. */
    take: async (projectId: ProjectId): Promise<void> => {
      const before = known.get(projectId);
      const age = now().getTime() - (before?.at ?? 0);
      if (!before) {
        const count = await countUpTo(projectId, Math.min(most, quicklyCounted));
        keep(projectId, count, now().getTime());
        // What fails here is tried again when its time comes.
        if (count >= quicklyCounted && count < most) recount(projectId).catch(() => undefined);
      } else if (before.count >= most) {
        if (age >= maxAgeMs.reached) await recount(projectId);
      } else if (age >= (before.count >= most * near ? maxAgeMs.near : maxAgeMs.far)) {
        recount(projectId).catch(() => undefined);
      }
      const counted = known.get(projectId);
      if (counted === undefined) return;
      if (counted.count >= most)
        throw new HeraldError(
          "device-quota-exceeded",
          `project: has ${most} devices, as many as it may; delete some, or ask the operator for more`,
        );
      counted.count++;
    },
  };
};

export type DeviceQuota = ReturnType<typeof createDeviceQuota>;
