import {
  type BusService,
  type DurableName,
  durables,
  ownerOf,
  type StreamName,
  streams,
  streamsMeasuredBy,
} from "@herald/contracts";
import { type Repeating, repeat } from "@herald/kit";
import { type Bus, type Connection, connectionOf } from "./connect.ts";

/** As often as Prometheus asks when nobody tells it otherwise: one small question for each durable and stream. */
const usualEveryMs = 15_000;

/**
 * Keeps the gauges of a service's durables, and of the streams that are its to measure, as new as `everyMs`. With several processes of
 * the service each says the same. While the broker is away they stay as they were.
 */
export const measureQueues = (bus: Bus, service: BusService, everyMs = usualEveryMs): Repeating => {
  const connection = connectionOf(bus);
  const own = (Object.keys(durables) as DurableName[]).filter((durable) => ownerOf(durable) === service);
  const measured = streamsMeasuredBy(service);
  return repeat("measure the queues", everyMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const measuring = [
      ...own.map((durable) => measureDurable(connection, durable)),
      ...measured.map((stream) => measureStream(connection, stream)),
    ];
    // A durable that is not there yet, or a leader that is being chosen, keeps nobody else's figure from being read.
    const results = await Promise.race([Promise.allSettled(measuring), ended(signal)]);
    for (const one of results)
      if (one.status === "rejected") connection.log.debug({ err: one.reason }, "a queue cannot be measured");
  });
};

/** A stop does not wait for a broker that does not answer. */
const ended = (signal: AbortSignal): Promise<[]> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve([]), { once: true }));

const measureDurable = async ({ jsm, telemetry }: Connection, durable: DurableName): Promise<void> => {
  const info = await jsm.consumers.info(durables[durable].stream, durable);
  telemetry.pending.record(info.num_pending, { durable });
  telemetry.ackPending.record(info.num_ack_pending, { durable });
};

const measureStream = async ({ jsm, telemetry }: Connection, stream: StreamName): Promise<void> => {
  const { config, state, ts = new Date().toISOString() } = await jsm.streams.info(stream);
  telemetry.streamMessages.record(state.messages, { stream });
  telemetry.streamBytes.record(state.bytes, { stream });
  telemetry.streamLimit.record(config.max_bytes, { stream });
  if (streams[stream].retention !== "workqueue") return;
  // By the broker's clock where it tells the time: ours may differ.
  const age = state.messages === 0 ? 0 : Date.parse(ts) - Date.parse(state.first_ts);
  telemetry.oldest.record(Math.max(0, age / 1000), { stream });
};
