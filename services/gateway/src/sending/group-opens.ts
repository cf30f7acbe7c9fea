import type { OpenGroupV1, ProjectId } from "@herald/contracts";

type Open = OpenGroupV1["opens"][number];
type Group = { readonly opens: Open[]; readonly written: Promise<void>; readonly flush: () => void };

/** The contract's maximum: with 100 per message and one fsync per publish, a broker takes 140,000 opens a second. */
const maxPerGroup = 100;
/** Long enough to fill a group under load; users do not notice, because they are already in the app. */
export const groupForMs = 10;

export type GroupOpens = ReturnType<typeof createGroupOpens>;

/**
 * Groups the opens of a project for up to 10 ms into one command of up to 100. A partial group waits for the previous write and grows
 * meanwhile, so a slow disk gets fewer, larger writes.
 */
export const createGroupOpens = (write: (opens: OpenGroupV1) => Promise<void>) => {
  const groups = new Map<ProjectId, Group>();
  const writing = new Set<Promise<unknown>>();
  /** The last unfinished write of each project. */
  const latest = new Map<ProjectId, Promise<unknown>>();

  const begin = (projectId: ProjectId): Group => {
    const opens: Open[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const settled = Promise.allSettled([promise]);
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
    /** Resolves when the open's group is on disk. */
    record: (projectId: ProjectId, open: Open) => {
      const group = groups.get(projectId) ?? begin(projectId);
      group.opens.push(open);
      if (group.opens.length >= maxPerGroup) group.flush();
      return group.written;
    },
    /** Writes all waiting opens immediately. */
    flush: async () => {
      for (const group of groups.values()) group.flush();
      await Promise.all(writing);
    },
  };
};

/** Ten seconds of the highest load of opens, at about 150 bytes each. */
const maxRemembered = 50_000;
const written = Promise.resolve();

/**
 * Answers a repeated open like the first, without writing it again, so a flood with one valid token costs only the signature checks.
 * Analytics dedupes opens that this cache has evicted.
 */
export const dedupeOpens = (record: GroupOpens["record"], maxEntries = maxRemembered): GroupOpens["record"] => {
  const recent = new Map<string, Promise<void>>();
  return (projectId: ProjectId, open) => {
    const key = `${open.notificationId}/${open.deviceId}`;
    const known = recent.get(key);
    if (known !== undefined) return known;
    const [oldest] = recent.keys();
    if (recent.size >= maxEntries && oldest !== undefined) recent.delete(oldest);
    const writing = record(projectId, open);
    recent.set(key, writing);
    void writing.then(
      // All finished writes share one promise, which saves memory.
      () => recent.has(key) && recent.set(key, written),
      () => recent.delete(key),
    );
    return writing;
  };
};
