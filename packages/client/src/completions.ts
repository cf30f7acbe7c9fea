import type { Notification } from "./api-types.ts";
import { type EventType, openStream } from "./events.ts";
import { type CallOptions, type Http, path, sleep } from "./http.ts";

export type CompletedOptions = CallOptions & {
  /** Called with the notification after each poll, for example to show its counts as a progress bar. */
  readonly onChange?: ((notification: Notification) => void) | undefined;
  /** Longest time between two reads, in milliseconds. Default: 15 s. */
  readonly maxPollMs?: number | undefined;
};

/** The events that make a notification final. */
const finalEvents = [
  "io.herald.notification.completed.v1",
  "io.herald.notification.cancelled.v1",
  "io.herald.notification.expired.v1",
] as const satisfies EventType[];

/** The first wait between two reads, in milliseconds. While the stream is open, an event usually ends it. */
const firstPollMs = 250;
const defaultMaxPollMs = 15_000;

/**
 * Waits by polling until notifications are final. All waiting calls share one stream of events, which makes them poll at once. Without
 * the stream they finish later.
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
        if (event) wake(event.data.notification_id);
        else for (const id of waiting.keys()) wake(id);
      }
    } catch {
      // For example too many open streams. Polling continues.
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

  /** Resolves when the notification is completed, cancelled or expired; of a proposed one, after somebody decided on it. */
  return async (
    id: string,
    { signal, onChange, maxPollMs = defaultMaxPollMs }: CompletedOptions = {},
  ): Promise<Notification> => {
    let asleep = new AbortController();
    const look = () => asleep.abort();
    join(id, look);
    try {
      for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, maxPollMs)) {
        asleep = new AbortController();
        const found = await http.get<Notification>(path`/notifications/${id}`, { signal });
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
