import type { ProjectId } from "@herald/contracts";
import type { Outbox } from "@herald/mongo";

/** Documents with an outbox, and which of them. */
type Carriers = Parameters<Outbox["flush"]>[0];
type Which = Parameters<Outbox["flush"]>[1];

/** The outbox reads and clears so many documents together. */
const most = 500;

/** What comes beyond that while the bus is unavailable, the outbox's sweep finds. */
const maxWaiting = 10_000;

/**
 * Has the events of documents published soon after they were written, many at a time: one document alone would cost three round
 * trips, and those that come while others are under way share theirs.
 */
const createQueue = (
  outbox: Pick<Outbox, "flush">,
  collection: Carriers,
  filterOf: (project: ProjectId, ids: string[]) => Which,
) => {
  const waiting = new Map<ProjectId, Set<string>>();
  let running: Promise<void> | undefined;

  const run = async () => {
    for (let next = waiting.entries().next(); !next.done; next = waiting.entries().next()) {
      const [project, ids] = next.value;
      const some = [...ids].slice(0, most);
      for (const id of some) ids.delete(id);
      // Whoever has more waits for its next turn behind the others.
      waiting.delete(project);
      if (ids.size > 0) waiting.set(project, ids);
      await outbox.flush(collection, filterOf(project, some));
    }
    running = undefined;
  };

  return {
    add: (project: ProjectId, ids: Iterable<string>): void => {
      const own = waiting.get(project) ?? new Set();
      for (const id of ids) if (own.size < maxWaiting) own.add(id);
      if (own.size === 0) return;
      waiting.set(project, own);
      running ??= Promise.resolve().then(run);
    },
    idle: async (): Promise<void> => {
      while (running) await running;
    },
  };
};

export type Announce = ReturnType<typeof createAnnounce>;

/** Says that documents have events in their outboxes. What is not said, or not heard, the outbox's sweep finds. */
export const createAnnounce = (
  outbox: Pick<Outbox, "flush">,
  collections: { devices: Carriers; topics: Carriers; projects: Carriers },
) => {
  const ofProject = (projectId: ProjectId, ids: string[]) => ({ projectId, _id: { $in: ids } });
  const devices = createQueue(outbox, collections.devices, ofProject);
  const topics = createQueue(outbox, collections.topics, ofProject);
  const projects = createQueue(outbox, collections.projects, (id) => ({ _id: id }));
  return {
    devices: devices.add,
    topics: topics.add,
    project: (id: ProjectId) => projects.add(id, [id]),
    /** Resolves when everything that was said has been tried. */
    idle: async () => {
      await Promise.all([devices.idle(), topics.idle(), projects.idle()]);
    },
  };
};
