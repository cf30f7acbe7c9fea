import type { Msg, MsgHdrs } from "@nats-io/transport-node";

/** A delivered message with its metadata and the ways to settle it. */
export type Received = {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  readonly stream: string;
  readonly sequence: number;
  readonly deliveryCount: number;
  readonly publishedAt: Date;
  /** Identifies the message, also after its stream was recreated; equal for each delivery. */
  readonly key: string;
  /** Its size in memory, in bytes. */
  readonly bytes: number;
  ack(): void;
  /** Always with a delay: after a bare nak the broker redelivers at once and uses up the deliveries in milliseconds. */
  nak(delayMs: number): void;
  /** Restarts the ack wait. */
  working(): void;
  term(reason: string): void;
};

/**
 * Reads a delivery's facts from its reply subject, in the form `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`
 * or the one that servers since 2.15 send, with domain and account before the stream. The client has this only inside its own loops.
 */
export const toReceived = (msg: Msg): Received => {
  const tokens = (msg.reply ?? "").split(".");
  const offset = tokens.length >= 11 ? 2 : 0;
  const [stream = "", , deliveries = "", sequence = "", , time = ""] = tokens.slice(2 + offset);
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || time === "") {
    throw new TypeError(`not a delivery of a stream: ${msg.subject}`);
  }
  return new StreamMessage(msg, stream, Number(sequence), Number(deliveries), time);
};

/** A class, because a closure for each message would cost more than parsing it. */
class StreamMessage implements Received {
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
    // Nanoseconds do not fit a number exactly, but a millisecond's worth of them does.
    return new Date(Number(this.#time) / 1e6);
  }
  get bytes(): number {
    return this.#msg.data.length + this.#msg.subject.length + 256;
  }
  ack(): void {
    this.#msg.respond("+ACK");
  }
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
