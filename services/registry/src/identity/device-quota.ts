import type { ProjectId } from "@herald/contracts";
import { HeraldError, LRUCache } from "@herald/kit";

/** A changed limit applies within a second. */
const limitMaxAgeMs = 1_000;
/** Counting this many takes a few milliseconds, and most projects have fewer. */
const quicklyCounted = 10_000;
/** Maximum age of a count: far from the quota, near it, and at it. */
const maxAgeMs = { far: 600_000, near: 10_000, reached: 1_000 };
const near = 0.9;
const maxProjects = 10_000;

type Known = { count: number; at: number };

/**
 * The device quota of each project. Far below the quota, devices are counted every ten minutes, and new devices are added to the count.
 * Replicas together may exceed the quota by the devices that they add between two counts.
 */
export const createDeviceQuota = ({
  max: defaultMax,
  ownLimit,
  countUpTo,
  now,
}: {
  readonly max: number;
  /** The limit that an operator has set for a project. */
  readonly ownLimit: (projectId: ProjectId) => Promise<number | undefined>;
  readonly countUpTo: (projectId: ProjectId, limit: number) => Promise<number>;
  readonly now: () => Date;
}) => {
  const known = new LRUCache<ProjectId, Known>({ max: maxProjects });
  const limits = new LRUCache<ProjectId, { readonly max: number }>({
    max: maxProjects,
    ttl: limitMaxAgeMs,
    fetchMethod: async (projectId) => ({ max: (await ownLimit(projectId)) ?? defaultMax }),
  });
  const counting = new Map<ProjectId, Promise<void>>();

  /** Concurrent callers share one count. */
  const recount = (projectId: ProjectId, limit: number): Promise<void> => {
    const underWay =
      counting.get(projectId) ??
      countUpTo(projectId, limit)
        .then((count) => void known.set(projectId, { count, at: now().getTime() }))
        .finally(() => counting.delete(projectId));
    counting.set(projectId, underWay);
    return underWay;
  };

  return {
    /** How many devices a project may have by default. */
    max: defaultMax,
    /** Counts one more device. @throws HeraldError `device-quota-exceeded`. */
    take: async (projectId: ProjectId): Promise<void> => {
      const { max } = (await limits.fetch(projectId)) ?? { max: defaultMax };
      const before = known.get(projectId);
      const age = now().getTime() - (before?.at ?? 0);
      if (!before) {
        await recount(projectId, Math.min(max, quicklyCounted));
        const count = known.get(projectId)?.count ?? 0;
        if (count >= quicklyCounted && count < max) recount(projectId, max).catch(() => undefined);
      } else if (before.count >= max) {
        if (age >= maxAgeMs.reached) await recount(projectId, max);
      } else if (age >= (before.count >= max * near ? maxAgeMs.near : maxAgeMs.far)) {
        recount(projectId, max).catch(() => undefined);
      }
      const counted = known.get(projectId);
      if (counted === undefined) return;
      if (counted.count >= max)
        throw new HeraldError(
          "device-quota-exceeded",
          `project: has ${max} devices, as many as it may; delete some, or ask the operator for more`,
        );
      counted.count++;
    },
  };
};
