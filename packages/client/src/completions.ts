import type { Notification } from "./api-types.ts";
import { type EventType, openStream } from "./events.ts";
import { type CallOptions, type Http, path, sleep } from "./http.ts";

export type CompletedOptions = CallOptions & {
  /** Called with each look at the notification on the way: its counts, for a progress bar. */
  readonly onChange?: ((notification: Notification) => void) | undefined;
  /** The longest time between two looks, in milliseconds: 15 s unless you say otherwise. */
  readonly maxPollMs?: number | undefined;
};

/** What says that a notification is final. */
const finalEvents = [
  "notification.completed",
  "notification.cancelled",
  "notification.expired",
] as const satisfies EventType[];

/** Between two looks at a notification: with the stream open its event comes first. */
const firstPollMs = 250;
const patientPollMs = 15_000;

/**
 * Waits for notifications to become final. All that wait share one stream of events, which tells when to look; looking now and then is
 * what happens anyway, so nothing is missed where there is no stream.
 */
export const createCompletions = (http: Http) => {
  const waiting = new Map<string, Set<() => void>>();
  let following: AbortController | undefined;

  const wake = (id: string) => {
    for (const look of waiting.get(id) ?? []) look();
  };

  const follow = async (signal: AbortSignal) => {
    try {
      for await (const { event } of openStream(http, { types: finalEvents, signal })) {
        if (event) wake(event.data.notificationId);
        else for (const id of waiting.keys()) wake(id);
      }
    } catch {
      // Too many streams, or none for this token: those who wait go on looking.
    }
  };

  const join = (id: string, look: () => void) => {
    const others = waiting.get(id) ?? new Set();
    waiting.set(id, others.add(look));
    if (following === undefined) {
      following = new AbortController();
      void follow(following.signal);
    }
  };

  const leave = (id: string, look: () => void) => {
    waiting.get(id)?.delete(look);
    if (waiting.get(id)?.size === 0) waiting.delete(id);
    if (waiting.size > 0) return;
    following?.abort();
    following = undefined;
  };

  /** Resolves when the notification is completed, cancelled or expired; `onChange` sees every look at it. */
  return async (
    id: string,
    { signal, onChange, maxPollMs = patientPollMs }: CompletedOptions = {},
  ): Promise<Notification> => {
    let asleep = new AbortController();
    const look = () => asleep.abort();
    join(id, look);
    try {
      for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, maxPollMs)) {
        asleep = new AbortController();
        const found = await http.get<Notification>(path`/api/v1/notifications/${id}`, { signal });
        onChange?.(found);
        if (found.completed_at !== undefined) return found;
        await sleep(pollMs, signal ? AbortSignal.any([signal, asleep.signal]) : asleep.signal).catch(() =>
          signal?.throwIfAborted(),
        );
      }
    } finally {
      leave(id, look);
    }
  };
};
