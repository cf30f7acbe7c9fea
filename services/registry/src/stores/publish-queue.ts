import type { ProjectId } from "@herald/contracts";
import type { Outbox } from "@herald/mongo";

type Collection = Parameters<Outbox["flush"]>[0];

/** Documents whose outboxes are read and cleared together. */
const pageSize = 500;
/** Maximum per project while the bus is unavailable. The outbox sweep finds the others. */
const maxQueued = 10_000;

/** Flushes many outboxes together: each alone would cost three round trips. Projects take turns. */
const createQueue = (outbox: Pick<Outbox, "flush">, collection: Collection) => {
  const queued = new Map<ProjectId, Set<string>>();
  let running: Promise<void> | undefined;

  const run = async () => {
    for (let next = queued.entries().next(); !next.done; next = queued.entries().next()) {
      const [projectId, ids] = next.value;
      const page = [...ids].slice(0, pageSize);
      for (const id of page) ids.delete(id);
      queued.delete(projectId);
      if (ids.size > 0) queued.set(projectId, ids);
      await outbox.flush(collection, { projectId, _id: { $in: page } });
    }
    running = undefined;
  };

  return {
    add: (projectId: ProjectId, ids: Iterable<string>): void => {
      const own = queued.get(projectId) ?? new Set();
      for (const id of ids) if (own.size < maxQueued) own.add(id);
      if (own.size === 0) return;
      queued.set(projectId, own);
      running ??= Promise.resolve().then(run);
    },
    idle: async (): Promise<void> => {
      while (running) await running;
    },
  };
};

/** Publishes the events in the outboxes of documents soon after they were written. */
export const createPublishQueue = (
  outbox: Pick<Outbox, "flush">,
  collections: Readonly<Record<"devices" | "topics" | "projects", Collection>>,
) => {
  const devices = createQueue(outbox, collections.devices);
  const topics = createQueue(outbox, collections.topics);
  return {
    devices: devices.add,
    topics: topics.add,
    project: (_id: ProjectId) => void outbox.flush(collections.projects, { _id }),
    /** Resolves when everything that was added has been tried. */
    idle: async () => {
      await Promise.all([devices.idle(), topics.idle()]);
    },
  };
};
