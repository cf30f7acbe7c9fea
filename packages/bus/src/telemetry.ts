import { meter, secondsHistogram } from "@herald/kit";
import type { Counter, Histogram, UpDownCounter } from "@opentelemetry/api";

/** What the bus measures. Labels are durables, patterns, question names and outcomes: never ids. */
export type Telemetry = {
  /** Messages settled: `durable`, `outcome` (done, dead, again). */
  readonly settled: Counter;
  /** Seconds from a message's receipt to its settlement, by `durable`. */
  readonly handling: Histogram;
  /** Messages that wait for something that is away, by `durable`. */
  readonly held: UpDownCounter;
  /** Messages received and not settled, by `durable`: held ones too. */
  readonly inFlight: UpDownCounter;
  /** Seconds until the stream's ack, by `pattern` and `outcome` (stored, duplicate, or the error's code). */
  readonly publishing: Histogram;
  /** Seconds until the answer, by `question` and `outcome` (answered or the error's code). */
  readonly asking: Histogram;
};

/** Instruments are made here, not on import: a meter asked for before the SDK has started records nothing for ever. */
export const createTelemetry = (): Telemetry => {
  const made = meter();
  return {
    settled: made.createCounter("herald.bus.settled", { description: "Messages settled" }),
    handling: secondsHistogram("herald.bus.handling.seconds", "Receipt to settlement"),
    held: made.createUpDownCounter("herald.bus.held", { description: "Messages held while something is away" }),
    inFlight: made.createUpDownCounter("herald.bus.in_flight", { description: "Messages received and not settled" }),
    publishing: secondsHistogram("herald.bus.publish.seconds", "Publish to ack"),
    asking: secondsHistogram("herald.bus.ask.seconds", "Question to answer"),
  };
};
