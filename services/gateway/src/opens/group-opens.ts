import type { OpenGroupV1, ProjectId } from "@herald/contracts";

type Open = OpenGroupV1["opens"][number];
type Group = { readonly opens: Open[]; readonly written: Promise<void>; readonly flush: () => void };

export type GroupOpens = {
  /** Resolves when the open's group is on disk. */
  readonly record: (projectId: ProjectId, open: Open) => Promise<void>;
  /** Writes all waiting opens at once. */
  readonly flush: () => Promise<void>;
};

/** The contract's maximum: with 100 per message and one fsync per publish, a broker takes 140,000 opens a second. */
const maxPerGroup = 100;
/** Long enough to fill a group under load; users do not notice, because they are already in the app. */
export const groupForMs = 10;

/**
 * Groups the opens of a project for up to 10 ms into one command of up to 100. A group that is not full waits for the previous one and
 * grows meanwhile, so a slow disk gets fewer, larger writes.
 */
export const createGroupOpens = (write: (opens: OpenGroupV1) => Promise<void>): GroupOpens => {
  const groups = new Map<ProjectId, Group>();
  const writing = new Set<Promise<void>>();
  /** The last unfinished write of each project. */
  const latest = new Map<ProjectId, Promise<void>>();

  const begin = (projectId: ProjectId): Group => {
    const opens: Open[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const settled = promise.then(
      () => {},
      () => {},
    );
    const flush = () => {
      if (groups.get(projectId) !== group) return;
      clearTimeout(timer);
      groups.delete(projectId);
      latest.set(projectId, settled);
      resolve(write({ projectId, opens }));
    };
    const timer = setTimeout(() => {
      const before = latest.get(projectId);
      if (before === undefined) flush();
      else void before.then(flush);
    }, groupForMs);
    const group = { opens, written: promise, flush };
    groups.set(projectId, group);
    writing.add(settled);
    void settled.then(() => {
      writing.delete(settled);
      if (latest.get(projectId) === settled) latest.delete(projectId);
    });
    return group;
  };

  return {
    record: (projectId, open) => {
      const group = groups.get(projectId) ?? begin(projectId);
      group.opens.push(open);
      if (group.opens.length >= maxPerGroup) group.flush();
      return group.written;
    },
    flush: async () => {
      for (const group of groups.values()) group.flush();
      await Promise.all(writing);
    },
  };
};
