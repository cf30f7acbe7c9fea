import type { OpensV1, ProjectId } from "@herald/contracts";

type Open = OpensV1["opens"][number];
type Group = { readonly opens: Open[]; readonly written: Promise<void>; readonly flush: () => void };

export type GroupOpens = {
  /** Resolves when the group that the open went with is on disk. */
  readonly record: (projectId: ProjectId, open: Open) => Promise<void>;
  /** Writes what waits, at once. */
  readonly flush: () => Promise<void>;
};

/** The contract's most; at 100 a message, one fsynced publish each carries 140,000 opens a second. */
const mostPerGroup = 100;
/** Long enough to gather a group under load, and nobody sees it: the user is already in the app. */
export const groupForMs = 10;

/** Gathers the opens of a project for up to 10 ms into one command of up to 100. */
export const createGroupOpens = (write: (opens: OpensV1) => Promise<void>): GroupOpens => {
  const groups = new Map<ProjectId, Group>();
  const writing = new Set<Promise<void>>();

  const begin = (projectId: ProjectId): Group => {
    const opens: Open[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const flush = () => {
      clearTimeout(timer);
      groups.delete(projectId);
      resolve(write({ projectId, opens }));
    };
    const timer = setTimeout(flush, groupForMs);
    const group = { opens, written: promise, flush };
    groups.set(projectId, group);
    const settled = promise.then(
      () => {},
      () => {},
    );
    writing.add(settled);
    void settled.then(() => writing.delete(settled));
    return group;
  };

  return {
    record: (projectId, open) => {
      const group = groups.get(projectId) ?? begin(projectId);
      group.opens.push(open);
      if (group.opens.length >= mostPerGroup) group.flush();
      return group.written;
    },
    flush: async () => {
      for (const group of groups.values()) group.flush();
      await Promise.all(writing);
    },
  };
};
