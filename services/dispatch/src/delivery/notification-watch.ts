import { isPersonal, type NotificationId, type ProjectId } from "@herald/contracts";
import { createByteCache, heldBytes } from "@herald/kit";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A notification that is being sent: its content, read once, and whether it still is to be sent. */
export type Watched = {
  /** Without its targets, which may be megabytes and are of no use any more. */
  readonly document: NotificationRecord;
  /** Some of its targets may mean one person. */
  readonly personal: boolean;
  /** Verdicts of this process about its devices, for the spike guard. */
  readonly verdicts: { judged: number; unregistered: number; spike: boolean };
  cancelled: boolean;
  abandoned: boolean;
  /** Batches that this process is sending. */
  running: number;
  /** When its state was read, in milliseconds. */
  checkedAt: number;
  checking?: Promise<void> | undefined;
};

export type NotificationWatch = {
  /** Undefined when it is not in the database. */
  get(projectId: ProjectId, id: NotificationId): Promise<Watched | undefined>;
  /** What was just inserted need not be read. */
  put(document: NotificationRecord): void;
  /** The same, and kept until `unpin`, however many others are read meanwhile. */
  pin(document: NotificationRecord): Watched;
  unpin(id: NotificationId): void;
  /** Why nothing more may be sent for it, at most {@link freshMs} old; throws when that cannot be known. */
  stopped(watched: Watched): Promise<"cancelled" | "abandoned" | undefined>;
  /** Whether this process is sending batches of it at this moment. */
  sending(id: NotificationId): boolean;
  /** This process has cancelled it: seen at once. */
  cancel(id: NotificationId): void;
};

/**
 * A cancel that another process answered is seen after this, because each looks again before a chunk of fifty pushes: ten point
 * reads a second cost nothing beside them, and need no message that could be lost. Whoever cancels waits that long with the answer.
 */
export const freshMs = 100;

/** So long after its expiry one is read again: retention may have removed it, and a row that is written then has no notification. */
const goneAfterMs = 86_400_000;

/** Keeps the notifications that were used last in memory, as many as `maxBytes` hold. */
export const createNotificationWatch = (
  notifications: Pick<NotificationStore, "get" | "getState">,
  { maxBytes, now }: { maxBytes: number; now: () => Date },
): NotificationWatch => {
  const known = createByteCache<NotificationId, Watched>({
    name: "notifications",
    maxBytes,
    sizeOf: ({ document }) => heldBytes(document),
  });
  const pinned = new Map<NotificationId, Watched>();
  const reading = new Map<NotificationId, Promise<Watched | undefined>>();

  const watch = (document: NotificationRecord): Watched => ({
    document: { ...document, content: { ...document.content, targets: [] } },
    personal: isPersonal(document.content.targets),
    verdicts: { judged: 0, unregistered: 0, spike: false },
    cancelled: document.cancelledAt !== undefined,
    abandoned: document.abandonedAt !== undefined,
    running: 0,
    checkedAt: now().getTime(),
  });

  const keep = (document: NotificationRecord): Watched => {
    const watched = watch(document);
    known.set(document._id, watched);
    return watched;
  };

  const read = async (projectId: ProjectId, id: NotificationId): Promise<Watched | undefined> => {
    const document = await notifications.get(projectId, id);
    if (!document) known.delete(id);
    return document ? (known.get(id) ?? keep(document)) : undefined;
  };

  const check = async (watched: Watched): Promise<void> => {
    const { projectId, _id } = watched.document;
    // Taken before the read: what changes during it is seen by the next one.
    const at = now().getTime();
    const document = await notifications.getState(projectId, _id);
    // A project that is deleted takes its notifications with it.
    watched.cancelled ||= document === null || document.cancelledAt !== undefined;
    watched.abandoned ||= document?.abandonedAt !== undefined;
    watched.checkedAt = at;
  };

  return {
    get: async (projectId, id) => {
      const fixed = pinned.get(id);
      if (fixed) return fixed.document.projectId === projectId ? fixed : undefined;
      const watched = known.get(id);
      if (watched && now().getTime() - watched.document.expiresAt.getTime() < goneAfterMs)
        return watched.document.projectId === projectId ? watched : undefined;
      const underWay = reading.get(id) ?? read(projectId, id).finally(() => reading.delete(id));
      reading.set(id, underWay);
      return underWay;
    },
    put: (document) => {
      keep(document);
    },
    pin: (document) => {
      const watched = known.peek(document._id) ?? watch(document);
      pinned.set(document._id, watched);
      return watched;
    },
    unpin: (id) => {
      pinned.delete(id);
    },
    stopped: async (watched) => {
      // A clock that was set back says nothing about how old it is.
      if (Math.abs(now().getTime() - watched.checkedAt) >= freshMs) {
        watched.checking ??= check(watched).finally(() => {
          watched.checking = undefined;
        });
        await watched.checking;
      }
      if (watched.cancelled) return "cancelled";
      return watched.abandoned ? "abandoned" : undefined;
    },
    sending: (id) => ((pinned.get(id) ?? known.peek(id))?.running ?? 0) > 0,
    cancel: (id) => {
      const watched = pinned.get(id) ?? known.peek(id);
      if (watched) watched.cancelled = true;
    },
  };
};
