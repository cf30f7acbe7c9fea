import type { EventData } from "./api-types.ts";
import { HeraldError } from "./error.ts";
import { backoffMs, type CallOptions, type Http, sleep } from "./http.ts";

export type EventType = keyof EventData;

/** An event as the stream and webhooks have it. Later versions of Herald add types: ignore those that you do not know. */
export type HeraldEvent<Type extends EventType = EventType> = {
  [Each in Type]: {
    /** The same however often the event comes. */
    readonly id: string;
    readonly type: Each;
    /** When it happened. */
    readonly timestamp: string;
    readonly data: EventData[Each];
  };
}[Type];

export type FollowOptions<Type extends EventType = EventType> = CallOptions & {
  /** Only these; absent: all. */
  readonly types?: readonly Type[] | undefined;
  /** From when on, at most 30 days ago; absent: from now. */
  readonly since?: Date | string | undefined;
  /** The `position` of the last event that you took: the stream goes on behind it. Goes before `since`. */
  readonly lastEventId?: string | undefined;
};

export type FollowedEvent<Type extends EventType = EventType> = HeraldEvent<Type> & {
  /** Where the stream is: give the last one as `lastEventId` to go on here. */
  readonly position: string;
};

/** Herald says every 15 s that it is there. */
const silenceMs = 60_000;

/** The blocks of a stream of server-sent events: position, and the event if the block has one. */
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
 * The stream of events, opened again behind its last position whenever it breaks off. An item without an event says that the stream
 * is open, or still is. Throws what Herald refuses: `position-gone` where events in between are not kept any more.
 */
export async function* openStream<Type extends EventType>(
  http: Http,
  options: FollowOptions<Type>,
): AsyncGenerator<Item<Type>> {
  const { types, since, signal } = options;
  let { lastEventId } = options;
  for (let failures = 0; ; ) {
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs);
    };
    const ending = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    try {
      const from = lastEventId === undefined && since !== undefined ? new Date(since).toISOString() : undefined;
      const response = await http.stream("/api/v1/events", {
        query: { types: types?.join(","), since: from },
        headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
        signal: ending,
      });
      heard();
      for await (const { position, data } of blocks(response.body as ReadableStream<Uint8Array>, heard)) {
        failures = 0;
        if (position === undefined) continue;
        lastEventId = position;
        yield data === "" ? { position } : { position, event: JSON.parse(data) };
      }
    } catch (error) {
      signal?.throwIfAborted();
      // The network broke it off, or it fell silent; everything that Herald says is a HeraldError with a status.
      if (error instanceof HeraldError && error.status !== undefined) throw error;
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
    failures++;
    await sleep(Math.min(backoffMs(failures), silenceMs), signal);
  }
}

export const createEvents = (http: Http) => ({
  /** Follows the project's events as they happen, without an end: break out of the loop, or abort the signal. */
  async *follow<Type extends EventType = EventType>(
    options: FollowOptions<Type> = {},
  ): AsyncGenerator<FollowedEvent<Type>, void, void> {
    for await (const { position, event } of openStream(http, options)) if (event) yield { ...event, position };
  },
});
