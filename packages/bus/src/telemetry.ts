import { meter, secondsHistogram } from "@herald/kit";
import type { Counter, Gauge, Histogram } from "@opentelemetry/api";

/** Messages of one durable in this process. */
export type InMemory = {
  readonly durable: string;
  /** Received and not settled, held ones too. */
  readonly inFlight: () => number;
  /** Waiting for something that is unavailable. */
  readonly held: () => number;
};

/** What the bus measures. Labels are durables, patterns, request names and outcomes: never ids. */
export type Telemetry = {
  /** Messages settled: `durable`, `outcome` (acked, dead_lettered, retried). */
  readonly settled: Counter;
  /** Seconds from a message's receipt to its settlement, by `durable`. */
  readonly processDuration: Histogram;
  /** What each consumer has in memory: asked for when metrics are read, since messages come and go far more often. */
  readonly consumers: Set<InMemory>;
  /** Messages in the stream that are not delivered yet, by `durable`. */
  readonly pending: Gauge;
  /** Messages given to some process and not settled, by `durable`. */
  readonly ackPending: Gauge;
  readonly streamMessages: Gauge;
  /** The sequence of a stream's oldest message, by `stream`. */
  readonly streamFirst: Gauge;
  readonly streamBytes: Gauge;
  /** What a stream may hold, in bytes, by `stream`. */
  readonly streamLimit: Gauge;
  /** Of what a stream keeps, how much a durable has not settled: at 1 the next that goes is one that it needs; by `durable`. */
  readonly lag: Gauge;
  /** Messages that were gone before a durable had them, at most, by `durable`. */
  readonly lost: Counter;
  /** Messages that were removed because their project held more than its share, by `stream`. */
  readonly removed: Counter;
  /** Seconds since the oldest message of a work queue was published, 0 where there is none, by `stream`. */
  readonly oldest: Gauge;
  /** Seconds until the stream's ack, by `pattern` and `outcome` (stored, duplicate, or the error's code). */
  readonly publishing: Histogram;
  /** Seconds until the answer, by `request` and `outcome` (answered or the error's code). */
  readonly requestDuration: Histogram;
};

/** Instruments are made here, not on import: a meter asked for before the SDK has started records nothing for ever. */
export const createTelemetry = (): Telemetry => {
  const made = meter();
  const consumers = new Set<InMemory>();
  const observe = (name: string, description: string, figure: "inFlight" | "held") =>
    made.createObservableGauge(name, { description }).addCallback((result) => {
      for (const consumer of consumers) result.observe(consumer[figure](), { durable: consumer.durable });
    });
  observe("herald.bus.held", "Messages held while something is unavailable", "held");
  observe("herald.bus.in_flight", "Messages received and not settled", "inFlight");
  return {
    consumers,
    settled: made.createCounter("herald.bus.settled", { description: "Messages settled" }),
    processDuration: secondsHistogram("herald.bus.process.seconds", "Receipt to settlement"),
    pending: made.createGauge("herald.bus.pending", { description: "Messages not delivered yet" }),
    ackPending: made.createGauge("herald.bus.ack_pending", { description: "Messages given and not settled" }),
    streamMessages: made.createGauge("herald.bus.stream.messages", { description: "Messages in the stream" }),
    streamFirst: made.createGauge("herald.bus.stream.first.sequence", {
      description: "Sequence of the oldest message",
    }),
    streamBytes: made.createGauge("herald.bus.stream.bytes", { description: "Bytes of the stream" }),
    streamLimit: made.createGauge("herald.bus.stream.limit.bytes", { description: "Bytes the stream may hold" }),
    lag: made.createGauge("herald.bus.lag.ratio", {
      description: "Share of what is kept that a durable has not settled",
    }),
    lost: made.createCounter("herald.bus.lost", { description: "Messages gone before a durable had them, at most" }),
    removed: made.createCounter("herald.bus.removed", {
      description: "Messages of projects above their share removed",
    }),
    oldest: made.createGauge("herald.bus.oldest.seconds", { description: "Age of a work queue's oldest message" }),
    publishing: secondsHistogram("herald.bus.publish.seconds", "Publish to ack"),
    requestDuration: secondsHistogram("herald.bus.request.seconds", "Request to reply"),
  };
};
