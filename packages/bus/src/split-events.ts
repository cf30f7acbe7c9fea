import { type BatchedEvent, eventBatchType, headerNames, isObject } from "@herald/contracts";
import { LRUCache } from "@herald/kit";
import { brokerHeaders, type MessageHeaders, readJson } from "./message-format.ts";
import type { Received } from "./received-message.ts";

const openBracket = "[".charCodeAt(0);

/** The events of a batch; undefined for any other message. Looks at the body first, because reading one header parses all of them. */
export const eventsOfBatch = (message: {
  readonly body: Uint8Array;
  readonly headers: MessageHeaders | undefined;
}): readonly BatchedEvent[] | undefined => {
  if (message.body[0] !== openBracket || message.headers?.get(headerNames.contentType) !== eventBatchType)
    return undefined;
  const events = readJson(message.body);
  return Array.isArray(events) && events.every((event) => isObject(event) && typeof event.id === "string")
    ? (events as BatchedEvent[])
    : undefined;
};

/** Messages that wait for another delivery because one of their events failed. A forgotten one only repeats its other events. */
const maxRemembered = 1_000;

/** By a message's key, which of its events this process has settled for good, so that a redelivery does not repeat them. */
export const createSettledEvents = () => new LRUCache<string, Set<number>>({ max: maxRemembered });

/**
 * The events of a batch, each to be handled, settled and dead-lettered as if it had come alone; any other message itself. The message is
 * acked when all its events are acked or dead-lettered. If some must be retried, it is redelivered, and this process skips the others.
 */
export const splitEvents = (
  message: Received,
  settledEvents: ReturnType<typeof createSettledEvents>,
): readonly Received[] => {
  const events = eventsOfBatch(message);
  if (events === undefined) return [message];
  const settled = settledEvents.get(message.key) ?? new Set();
  settledEvents.set(message.key, settled);
  const left = [...events.keys()].filter((index) => !settled.has(index));
  const shared: Shared = {
    message,
    bytes: Math.ceil(message.bytes / events.length),
    settled,
    left: left.length,
    retryMs: Number.POSITIVE_INFINITY,
    signalled: false,
    end() {
      if (--this.left > 0) return;
      if (this.retryMs < Number.POSITIVE_INFINITY) return message.nak(this.retryMs);
      settledEvents.delete(message.key);
      message.ack();
    },
  };
  // None is left when its events were settled under an earlier delivery.
  if (left.length === 0) message.ack();
  return left.map((index) => new ReceivedEvent(shared, events[index] as BatchedEvent, index));
};

type Shared = {
  readonly message: Received;
  /** Of one event. */
  readonly bytes: number;
  readonly settled: Set<number>;
  /** Events that are not settled. */
  left: number;
  /** The shortest delay after which one of them is retried, so that none waits for another. */
  retryMs: number;
  /** Whether the message has just got a progress signal. */
  signalled: boolean;
  end(): void;
};

class ReceivedEvent implements Received {
  readonly #shared: Shared;
  readonly #event: BatchedEvent;
  readonly #index: number;
  #headers: MessageHeaders | undefined;

  constructor(shared: Shared, event: BatchedEvent, index: number) {
    this.#shared = shared;
    this.#event = event;
    this.#index = index;
  }

  get stream(): string {
    return this.#shared.message.stream;
  }
  get sequence(): number {
    return this.#shared.message.sequence;
  }
  get deliveryCount(): number {
    return this.#shared.message.deliveryCount;
  }
  get key(): string {
    return `${this.#shared.message.key}/${this.#index}`;
  }
  get subject(): string {
    return this.#shared.message.subject;
  }
  get publishedAt(): Date {
    return this.#shared.message.publishedAt;
  }
  get bytes(): number {
    return this.#shared.bytes;
  }
  get body(): Uint8Array {
    return Buffer.from(JSON.stringify(this.#event.data) ?? "");
  }
  /** The headers that the event would have in binary mode. */
  get headers(): MessageHeaders {
    this.#headers ??= binaryHeaders(this.#event);
    return this.#headers;
  }
  json(): unknown {
    return this.#event.data;
  }
  ack(): void {
    this.#shared.settled.add(this.#index);
    this.#shared.end();
  }
  term(): void {
    this.ack();
  }
  nak(delayMs: number): void {
    this.#shared.retryMs = Math.min(this.#shared.retryMs, delayMs);
    this.#shared.end();
  }
  /** One signal is enough for all events of a message. */
  working(): void {
    const shared = this.#shared;
    if (shared.signalled) return;
    shared.signalled = true;
    setImmediate(() => {
      shared.signalled = false;
    });
    shared.message.working();
  }
}

const binaryHeaders = ({ data: _, requestid, traceparent, ...attributes }: BatchedEvent): MessageHeaders => {
  const binary = new Map<string, string>([
    [headerNames.contentType, "application/json"],
    [brokerHeaders.messageId, attributes.id],
  ]);
  for (const [name, value] of Object.entries(attributes)) binary.set(`ce-${name}`, String(value));
  if (requestid !== undefined) binary.set(headerNames.requestId, requestid);
  if (traceparent !== undefined) binary.set("traceparent", traceparent);
  return binary;
};
