import type { BatchedEvent } from "@herald/contracts";
import { LRUCache } from "@herald/kit";
import type { MessageHeaders } from "./message-format.ts";
import { headersOfEvent, type Received } from "./received-message.ts";

/** Messages that wait for another delivery because one of their events failed. A forgotten one only repeats its other events. */
const maxRemembered = 1_000;

/** By a message's key, which of its events this process has settled for good, so that a redelivery does not repeat them. */
export const createSettledEvents = () => new LRUCache<string, Set<number>>({ max: maxRemembered });

/**
 * The events of a joined message, each to be handled, settled and dead-lettered as if it had come alone: for a message that cannot be
 * handled as a whole. It is acked when all its events are acked or dead-lettered. If some must be retried, it is redelivered, and this
 * process skips the others.
 */
export const splitEvents = (
  message: Received,
  events: readonly BatchedEvent[],
  settledEvents: ReturnType<typeof createSettledEvents>,
): readonly Received[] => {
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
    this.#headers ??= headersOfEvent(this.#event);
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
