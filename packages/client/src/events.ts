import type { EventData } from "./api-types.ts";
import { HeraldError } from "./error.ts";
import { backoffMs, type CallOptions, type Http, isTemporary, sleep } from "./http.ts";

export type EventType = keyof EventData;

/** An event as the stream and webhooks deliver it. Ignore types that you do not know: later versions of Herald add some. */
export type HeraldEvent<Type extends EventType = EventType> = {
  [Each in Type]: {
    /** Stays the same if the event is delivered again. */
    readonly id: string;
    readonly type: Each;
    /** When it happened. */
    readonly timestamp: string;
    readonly data: EventData[Each];
  };
}[Type];

export type FollowOptions<Type extends EventType = EventType> = CallOptions & {
  /** Only these types. Default: all. */
  readonly types?: readonly Type[] | undefined;
  /** Start time, at most 30 days ago. Default: now. */
  readonly since?: Date | string | undefined;
  /** The `position` of the last event that you processed: the stream resumes after it. Takes precedence over `since`. */
  readonly lastEventId?: string | undefined;
};

export type FollowedEvent<Type extends EventType = EventType> = HeraldEvent<Type> & {
  /** The position in the stream. Pass the last one as `lastEventId` to resume. */
  readonly position: string;
};

/** Herald sends a heartbeat every 15 s. */
const idleTimeoutMs = 60_000;

/** Parses server-sent events. A block without data is a heartbeat that moves the position. */
async function* blocks(body: ReadableStream<Uint8Array>, onBytes: () => void) {
  const decoder = new TextDecoder();
  let text = "";
  let block = { position: undefined as string | undefined, data: "" };
  for await (const bytes of body) {
    onBytes();
    const lines = (text + decoder.decode(bytes, { stream: true })).split(/\r?\n/);
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) block.position = line.slice(4);
      else if (line.startsWith("data: ")) block.data += line.slice(6);
      else if (line === "") {
        yield block;
        block = { position: block.position, data: "" };
      }
    }
  }
}

type Item<Type extends EventType> = { readonly position: string; readonly event?: HeraldEvent<Type> };

/**
 * The stream of events. It resumes after its last position if the connection breaks or Herald is unavailable. An item without an event
 * means that the stream is open. Throws errors of Herald, such as `position-gone` if events after the position are no longer stored.
 */
export async function* openStream<Type extends EventType>(
  http: Http,
  options: FollowOptions<Type>,
): AsyncGenerator<Item<Type>> {
  const { types, since, signal } = options;
  let { lastEventId } = options;
  let opened = false;
  for (let failures = 0; ; ) {
    const idle = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => idle.abort(), idleTimeoutMs);
    };
    const ending = signal ? AbortSignal.any([signal, idle.signal]) : idle.signal;
    try {
      const from = lastEventId === undefined && since !== undefined ? new Date(since).toISOString() : undefined;
      const response = await http.stream("/events", {
        query: { types: types?.join(","), since: from },
        headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
        signal: ending,
      });
      opened = true;
      heard();
      for await (const { position, data } of blocks(response.body as ReadableStream<Uint8Array>, heard)) {
        failures = 0;
        if (position === undefined) continue;
        lastEventId = position;
        yield data === "" ? { position } : { position, event: JSON.parse(data) };
      }
    } catch (error) {
      signal?.throwIfAborted();
      // An opened stream survives restarts of Herald. The first attempt throws, or a wrong address would go unnoticed.
      if (!opened || (error instanceof HeraldError && !isTemporary(error))) throw error;
    } finally {
      clearTimeout(timer);
      idle.abort();
    }
    failures++;
    await sleep(Math.min(backoffMs(failures), idleTimeoutMs), signal);
  }
}

export const createEvents = (http: Http) => ({
  /** Follows the project's events until you break out of the loop or abort the signal. */
  async *follow<Type extends EventType = EventType>(
    options: FollowOptions<Type> = {},
  ): AsyncGenerator<FollowedEvent<Type>, void, void> {
    for await (const { position, event } of openStream(http, options)) if (event) yield { ...event, position };
  },
});
