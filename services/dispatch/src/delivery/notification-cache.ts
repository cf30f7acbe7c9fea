import type { NotificationId, ProjectId } from "@herald/contracts";
import { createByteCache, memoryBytesOf } from "@herald/kit";
import { isPersonal } from "@herald/rules";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { createPersonalContent, type PersonalContent } from "./personal-content.ts";

/** A notification that is being sent: its content, read once, and whether it may still be sent. */
export type CachedNotification = {
  /** Without its targets, which may take megabytes and are not needed any more. */
  readonly document: NotificationRecord;
  /** Renders its texts for a device; undefined: all devices get the same. */
  readonly contentFor: PersonalContent | undefined;
  /** {@link isForOneUser}. */
  readonly personal: boolean;
  /** The answers about tokens that this process received for its devices, for the spike guard. */
  readonly tokenAnswers: { total: number; unregistered: number; spike: boolean };
  cancelled: boolean;
  abandoned: boolean;
  /** Until somebody resumes it. */
  paused: boolean;
  /** Its project was deleted, and it with it. */
  gone: boolean;
  /** Batches that this process is sending. */
  running: number;
  /** When its state was read, in milliseconds. */
  checkedAt: number;
  checking?: Promise<void> | undefined;
};

/** Some of its targets may mean a single user, or its texts show values of one. */
export const isForOneUser = ({ personal, content }: Pick<NotificationRecord, "personal" | "content">): boolean =>
  personal !== undefined || isPersonal(content.targets);

/** When a row's push expires: a wave has a time of its own. */
export const expiryOf = (
  { document }: CachedNotification,
  { expiresAt }: { readonly expiresAt?: Date | undefined },
): Date => expiresAt ?? document.expiresAt;

/**
 * After this time, every process notices another process's cancel, because each reads the state again before a chunk of 50 pushes. Ten
 * point reads a second cost little compared to the pushes, and need no message that could be lost. A cancel responds after this time.
 */
export const stateMaxAgeMs = 100;

/** This long after its expiry, a notification is read again: retention may have removed it, and a new row would have no notification. */
const goneAfterMs = 86_400_000;

/** Bytes of compiled texts as their renderer parses them, for each character of their JSON: 8 to 14. */
const parsedPerCharacter = 12;

/** Keeps the most recently used notifications in memory, up to `maxBytes`. */
export const createNotificationCache = (
  notifications: Pick<NotificationStore, "get" | "getState">,
  { maxBytes, now }: { maxBytes: number; now: () => Date },
) => {
  const known = createByteCache<NotificationId, CachedNotification>({
    name: "notifications",
    maxBytes,
    sizeOf: ({ document }) => memoryBytesOf(document) + parsedPerCharacter * (document.personal?.texts.length ?? 0),
  });
  const pinned = new Map<NotificationId, CachedNotification>();
  const reading = new Map<NotificationId, Promise<CachedNotification | undefined>>();

  const cache = (document: NotificationRecord, readAt = now()): CachedNotification => ({
    document: { ...document, content: { ...document.content, targets: [] } },
    contentFor: document.personal && createPersonalContent(document.content, document.personal),
    personal: isForOneUser(document),
    tokenAnswers: { total: 0, unregistered: 0, spike: false },
    gone: false,
    cancelled: document.stop?.kind === "cancelled",
    abandoned: document.stop?.kind === "abandoned",
    paused: document.paused !== undefined,
    running: 0,
    checkedAt: readAt.getTime(),
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
    // Taken before the read, so that the next check sees a change during this read.
    const at = now().getTime();
    const document = await notifications.getState(projectId, _id);
    // Deleting a project removes its notifications.
    cached.gone ||= document === null;
    cached.cancelled ||= document === null || document.stop?.kind === "cancelled";
    cached.abandoned ||= document?.stop?.kind === "abandoned";
    cached.paused = document?.paused !== undefined;
    cached.checkedAt = at;
  };

  /** Reads the state again if it is older than {@link stateMaxAgeMs}. */
  const refresh = async (cached: CachedNotification): Promise<void> => {
    // `abs`, because after a clock was set back, the age is not known.
    if (Math.abs(now().getTime() - cached.checkedAt) < stateMaxAgeMs) return;
    cached.checking ??= check(cached).finally(() => {
      cached.checking = undefined;
    });
    await cached.checking;
  };

  return {
    /** Undefined when the notification is not in the database. */
    get: async (projectId: ProjectId, id: NotificationId): Promise<CachedNotification | undefined> => {
      const fixed = pinned.get(id);
      if (fixed) return fixed.document.projectId === projectId ? fixed : undefined;
      const cached = known.get(id);
      if (cached && now().getTime() - cached.document.expiresAt.getTime() < goneAfterMs)
        return cached.document.projectId === projectId ? cached : undefined;
      const underWay = reading.get(id) ?? read(projectId, id).finally(() => reading.delete(id));
      reading.set(id, underWay);
      return underWay;
    },
    /** Adds a notification that was just inserted, so that it need not be read. */
    put: keep,
    /** Adds a notification whose state was that of `readAt`, and keeps it until `unpin`, regardless of `maxBytes`. */
    pin: (document: NotificationRecord, readAt: Date): CachedNotification => {
      const cached = known.peek(document._id) ?? cache(document, readAt);
      pinned.set(document._id, cached);
      return cached;
    },
    unpin: (id: NotificationId) => {
      pinned.delete(id);
    },
    /** Whether its project was deleted. Throws when the state cannot be read. */
    isGone: async (cached: CachedNotification): Promise<boolean> => {
      await refresh(cached);
      return cached.gone;
    },
    /** Why sending must stop; undefined: it may continue. At most {@link stateMaxAgeMs} old. Throws when the state cannot be read. */
    stopped: async (cached: CachedNotification): Promise<"cancelled" | "abandoned" | undefined> => {
      await refresh(cached);
      if (cached.cancelled) return "cancelled";
      return cached.abandoned ? "abandoned" : undefined;
    },
    /** Whether this process is sending batches of the notification now. */
    sending: (id: NotificationId): boolean => ((pinned.get(id) ?? known.peek(id))?.running ?? 0) > 0,
    /** Marks a notification as cancelled by this process, which then stops sending it at once. */
    cancel: (id: NotificationId) => {
      const cached = pinned.get(id) ?? known.peek(id);
      if (cached) cached.cancelled = true;
    },
    /** Marks a notification as paused or resumed by this process. */
    setPaused: (id: NotificationId, paused: boolean) => {
      const cached = pinned.get(id) ?? known.peek(id);
      if (cached) cached.paused = paused;
    },
  };
};

export type NotificationCache = ReturnType<typeof createNotificationCache>;
