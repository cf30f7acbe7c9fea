import { meter, secondsHistogram } from "@herald/kit";

/** Messages of one durable in this process. */
type InMemory = {
  readonly durable: string;
  /** Received and not settled, including messages that wait. */
  readonly inFlight: () => number;
  /** Waiting for a dependency that is unavailable. */
  readonly waiting: () => number;
};

/** The metrics of the bus. Labels are durables, patterns, request names and outcomes: never ids. */
export type Telemetry = ReturnType<typeof createTelemetry>;

/** A function, because a meter that is requested on import, before the SDK has started, never records anything. */
export const createTelemetry = () => {
  const made = meter();
  const gauge = (name: string, description: string) => made.createGauge(name, { description });
  const counter = (name: string, description: string) => made.createCounter(name, { description });
  const consumers = new Set<InMemory>();
  const observe = (name: string, description: string, figure: "inFlight" | "waiting") =>
    made.createObservableGauge(name, { description }).addCallback((result) => {
      for (const consumer of consumers) result.observe(consumer[figure](), { durable: consumer.durable });
    });
  observe("herald.bus.waiting", "Messages that wait while something is unavailable", "waiting");
  observe("herald.bus.in_flight", "Messages received and not settled", "inFlight");
  return {
    /** The messages that each consumer has in memory. Observed when metrics are collected, because they change far more often. */
    consumers,
    /** By `durable` and `outcome` (acked, dead_lettered, retried). */
    settled: counter("herald.bus.settled", "Messages settled"),
    /** By `durable`. */
    processDuration: secondsHistogram("herald.bus.process.seconds", "Receipt to settlement"),
    /** By `durable`, like `ackPending`. */
    pending: gauge("herald.bus.pending", "Messages not delivered yet"),
    ackPending: gauge("herald.bus.ack_pending", "Messages given and not settled"),
    /** By `stream`, like the next three. */
    streamMessages: gauge("herald.bus.stream.messages", "Messages in the stream"),
    streamFirst: gauge("herald.bus.stream.first.sequence", "Sequence of the oldest message"),
    streamBytes: gauge("herald.bus.stream.bytes", "Bytes of the stream"),
    streamLimit: gauge("herald.bus.stream.limit.bytes", "Bytes the stream may hold"),
    /** By `durable`. At 1 the stream removes next a message that the durable still needs. */
    lag: gauge("herald.bus.lag.ratio", "Share of what is kept that a durable has not settled"),
    /** By `durable`. */
    lost: counter("herald.bus.lost", "Messages gone before a durable had them, at most"),
    /** By `stream`. */
    removed: counter("herald.bus.removed", "Messages of projects above their share removed"),
    /** In seconds, 0 for an empty queue, by `stream`. */
    oldest: gauge("herald.bus.oldest.seconds", "Age of a work queue's oldest message"),
    /** By `pattern` and `outcome` (stored, duplicate, or the error's code). */
    publishing: secondsHistogram("herald.bus.publish.seconds", "Publish to ack"),
    /** By `pattern`. Several events may share a message. */
    events: counter("herald.bus.events", "Events published"),
    /** By `request` and `outcome` (answered or the error's code). */
    requestDuration: secondsHistogram("herald.bus.request.seconds", "Request to reply"),
  };
};
