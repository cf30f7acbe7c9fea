import { isPersonal, type NotificationId, type ProjectId } from "@herald/contracts";
import { createByteCache, memoryBytesOf } from "@herald/kit";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A notification that is being sent: its content, read once, and whether it still is to be sent. */
export type CachedNotification = {
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

export type NotificationCache = {
  /** Undefined when it is not in the database. */
  get(projectId: ProjectId, id: NotificationId): Promise<CachedNotification | undefined>;
  /** What was just inserted need not be read. */
  put(document: NotificationRecord): void;
  /** The same, and kept until `unpin`, however many others are read meanwhile. */
  pin(document: NotificationRecord): CachedNotification;
  unpin(id: NotificationId): void;
  /** Why nothing more may be sent for it, at most {@link freshMs} old; throws when that cannot be known. */
  stopped(cached: CachedNotification): Promise<"cancelled" | "abandoned" | undefined>;
  /** Whether this process is sending batches of it at this moment. */
  sending(id: NotificationId): boolean;
  /** This process has cancelled it: seen at once. */
  cancel(id: NotificationId): void;
};

/**
 * A cancel that another process answered is seen after this, because each looks again before a chunk of fifty pushes: ten point
 * reads a second cost nothing beside them, and need no message that could be lost. A cancel answers after that time.
 */
export const freshMs = 100;

/** So long after its expiry one is read again: retention may have removed it, and a row that is written then has no notification. */
const goneAfterMs = 86_400_000;

/** Keeps the notifications that were used last in memory, as many as `maxBytes` hold. */
export const createNotificationCache = (
  notifications: Pick<NotificationStore, "get" | "getState">,
  { maxBytes, now }: { maxBytes: number; now: () => Date },
): NotificationCache => {
  const known = createByteCache<NotificationId, CachedNotification>({
    name: "notifications",
    maxBytes,
    sizeOf: ({ document }) => memoryBytesOf(document),
  });
  const pinned = new Map<NotificationId, CachedNotification>();
  const reading = new Map<NotificationId, Promise<CachedNotification | undefined>>();

  const cache = (document: NotificationRecord): CachedNotification => ({
    document: { ...document, content: { ...document.content, targets: [] } },
    personal: isPersonal(document.content.targets),
    verdicts: { judged: 0, unregistered: 0, spike: false },
    cancelled: document.cancelledAt !== undefined,
    abandoned: document.abandonedAt !== undefined,
    running: 0,
    checkedAt: now().getTime(),
  });

  const keep = (document: NotificationRecord): CachedNotification => {
    const cached = cache(document);
    known.set(document._id, cached);
    return cached;
  };

  const read = async (projectId: ProjectId, id: NotificationId): Promise<CachedNotification | undefined> => {
    const document = await notifications.get(projectId, id);
    if (!document) known.delete(id);
    return document ? (known.get(id) ?? keep(document)) : undefined;
  };

  const check = async (cached: CachedNotification): Promise<void> => {
    const { projectId, _id } = cached.document;
    // Taken before the read: what changes during it is seen by the next one.
    const at = now().getTime();
    const document = await notifications.getState(projectId, _id);
    // A project that is deleted takes its notifications with it.
    cached.cancelled ||= document === null || document.cancelledAt !== undefined;
    cached.abandoned ||= document?.abandonedAt !== undefined;
    cached.checkedAt = at;
  };

  return {
    get: async (projectId, id) => {
      const fixed = pinned.get(id);
      if (fixed) return fixed.document.projectId === projectId ? fixed : undefined;
      const cached = known.get(id);
      if (cached && now().getTime() - cached.document.expiresAt.getTime() < goneAfterMs)
        return cached.document.projectId === projectId ? cached : undefined;
      const underWay = reading.get(id) ?? read(projectId, id).finally(() => reading.delete(id));
      reading.set(id, underWay);
      return underWay;
    },
    put: (document) => {
      keep(document);
    },
    pin: (document) => {
      const cached = known.peek(document._id) ?? cache(document);
      pinned.set(document._id, cached);
      return cached;
    },
    unpin: (id) => {
      pinned.delete(id);
    },
    stopped: async (cached) => {
      // A clock that was set back says nothing about how old it is.
      if (Math.abs(now().getTime() - cached.checkedAt) >= freshMs) {
        cached.checking ??= check(cached).finally(() => {
          cached.checking = undefined;
        });
        await cached.checking;
      }
      if (cached.cancelled) return "cancelled";
      return cached.abandoned ? "abandoned" : undefined;
    },
    sending: (id) => ((pinned.get(id) ?? known.peek(id))?.running ?? 0) > 0,
    cancel: (id) => {
      const cached = pinned.get(id) ?? known.peek(id);
      if (cached) cached.cancelled = true;
    },
  };
};
