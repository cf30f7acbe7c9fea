import { type BatchedEvent, eventBatchType, headerNames, isObject } from "@herald/contracts";
import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import type { BusConnection } from "./connect.ts";
import { brokerHeaders, type MessageHeaders, readJson } from "./message-format.ts";

/** What a handler handles and settles: a delivered message, or one event of a message that has several. */
export type Received = {
  readonly stream: string;
  readonly sequence: number;
  readonly deliveryCount: number;
  /** Identifies it, even after its stream was recreated; equal for each delivery. */
  readonly key: string;
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: MessageHeaders | undefined;
  readonly publishedAt: Date;
  /** Its size in memory, in bytes. */
  readonly bytes: number;
  /** The body; undefined when it is not JSON. */
  json(): unknown;
  ack(): void;
  nak(delayMs: number): void;
  /** Restarts the ack wait. */
  working(): void;
  term(reason: string): void;
};

/** A delivered message with its metadata and the methods to settle it. A class, because closures would cost more than parsing. */
export class ReceivedMessage implements Received {
  readonly #msg: Msg;
  readonly #time: string;
  readonly stream: string;
  readonly sequence: number;
  readonly deliveryCount: number;
  readonly key: string;

  constructor(msg: Msg, stream: string, sequence: number, deliveryCount: number, time: string) {
    this.#msg = msg;
    this.#time = time;
    this.stream = stream;
    this.sequence = sequence;
    this.deliveryCount = deliveryCount;
    this.key = `${sequence}/${time}`;
  }

  get subject(): string {
    return this.#msg.subject;
  }
  get body(): Uint8Array {
    return this.#msg.data;
  }
  get headers(): MsgHdrs | undefined {
    return this.#msg.headers;
  }
  get publishedAt(): Date {
    // A number cannot hold nanoseconds exactly, but it holds milliseconds.
    return new Date(Number(this.#time) / 1e6);
  }
  get bytes(): number {
    return this.#msg.data.length + this.#msg.subject.length + 256;
  }
  json(): unknown {
    return readJson(this.#msg.data);
  }
  ack(): void {
    this.#msg.respond("+ACK");
  }
  /** Always sends a delay: after a nak without a delay the broker redelivers at once and uses up the deliveries in milliseconds. */
  nak(delayMs: number): void {
    this.#msg.respond(`-NAK ${JSON.stringify({ delay: Math.round(delayMs * 1e6) })}`);
  }
  working(): void {
    this.#msg.respond("+WPI");
  }
  term(reason: string): void {
    this.#msg.respond(`+TERM ${reason}`);
  }
}

/**
 * Reads a delivery's metadata from its reply subject:
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`, or with domain and account before the stream,
 * as nats-server sends it since 2.15. The client parses it only inside its own loops.
 */
export const toReceived = (msg: Msg): ReceivedMessage => {
  const tokens = (msg.reply ?? "").split(".");
  const offset = tokens.length >= 11 ? 2 : 0;
  const [stream = "", , deliveries = "", sequence = "", , time = ""] = tokens.slice(2 + offset);
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || time === "") {
    throw new TypeError(`not a delivery of a stream: ${msg.subject}`);
  }
  return new ReceivedMessage(msg, stream, Number(sequence), Number(deliveries), time);
};

const openBracket = "[".charCodeAt(0);

/** The events of a joined message; undefined for any other. Looks at the body first, because reading one header parses all of them. */
export const eventsOf = (message: Carrier): readonly BatchedEvent[] | undefined => {
  if (message.body[0] !== openBracket || message.headers?.get(headerNames.contentType) !== eventBatchType)
    return undefined;
  const events = readJson(message.body);
  return Array.isArray(events) && events.every((event) => isObject(event) && typeof event.id === "string")
    ? (events as BatchedEvent[])
    : undefined;
};

type Carrier = { readonly body: Uint8Array; readonly headers: MessageHeaders | undefined };

/** The headers that an event of a joined message would have in binary mode. */
export const headersOfEvent = ({ data: _, requestid, traceparent, ...attributes }: BatchedEvent): MessageHeaders => {
  const binary = new Map<string, string>([
    [headerNames.contentType, "application/json"],
    [brokerHeaders.messageId, attributes.id],
  ]);
  for (const [name, value] of Object.entries(attributes)) binary.set(`ce-${name}`, String(value));
  if (requestid !== undefined) binary.set(headerNames.requestId, requestid);
  if (traceparent !== undefined) binary.set("traceparent", traceparent);
  return binary;
};

type Signalled = { signalledAt: number; readonly settled: boolean; readonly received: { working(): void } };

/**
 * Signals `working()` for every message in this process, running, waiting or blocked: after a third of the ack wait, and at once when the
 * connection is back. A message that is settled earlier needs no signal. There is one timer for each durable.
 */
export const createProgress = (
  connection: Pick<BusConnection, "connected" | "listeners">,
  tasks: ReadonlyMap<string, Signalled>,
) => {
  let timer: NodeJS.Timeout | undefined;
  let tickMs = 0;
  const signal = (quietMs: number) => {
    if (!connection.connected) return;
    const now = performance.now();
    for (const task of tasks.values()) {
      if (task.settled || now - task.signalledAt < quietMs) continue;
      task.received.working();
      task.signalledAt = now;
    }
  };
  const onConnection = (connected: boolean) => {
    if (connected) signal(0);
  };
  connection.listeners.add(onConnection);
  return {
    /** Starts the signals, as often as the ack wait requires. */
    follow(ackWaitMs: number) {
      // Checks twice as often, so that signals are at most half an ack wait apart and a stall of the process has the other half.
      if (tickMs === ackWaitMs / 6) return;
      tickMs = ackWaitMs / 6;
      clearInterval(timer);
      timer = setInterval(signal, tickMs, ackWaitMs / 3);
    },
    stop() {
      connection.listeners.delete(onConnection);
      clearInterval(timer);
    },
  };
};
