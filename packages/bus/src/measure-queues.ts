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
import type { StreamInfo } from "@nats-io/jetstream";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { durablesOf, positionOf } from "./stream-position.ts";

/** As often as Prometheus asks when nobody tells it otherwise: one small request for each durable and stream. */
const defaultIntervalMs = 15_000;

/** Where each durable was: kept beyond the process, for what it missed while no process was there. */
export type Positions = {
  /**
   * Remembers that the durable has had all up to `position`, in a stream that keeps `first` to `last`. Gives how many messages, at
   * most, were gone before it had them: each is told once.
   */
  readonly advance: (durable: DurableName, position: number, kept: { first: number; last: number }) => Promise<number>;
};

export type MeasureOptions = { readonly everyMs?: number; readonly positions?: Positions };

/**
 * Keeps the gauges of a service's durables, and of the streams that are its to measure, as new as `everyMs`. With several processes of
 * the service each says the same. While the broker is unavailable they stay as they were.
 */
export const measureQueues = (bus: Bus, service: BusService, options: MeasureOptions = {}): Repeating => {
  const connection = connectionOf(bus);
  const { everyMs = defaultIntervalMs, positions } = options;
  const own = (Object.keys(durables) as DurableName[]).filter((durable) => ownerOf(durable) === service);
  const measured = streamsMeasuredBy(service);
  return repeat("measure the queues", everyMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const measuring = [
      ...own.map((durable) => measureDurable(connection, durable)),
      ...measured.map((stream) => measureStream(connection, stream, positions)),
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

const measureStream = async (connection: Connection, stream: StreamName, positions?: Positions): Promise<void> => {
  const { jsm, telemetry } = connection;
  const { config, state, ts = new Date().toISOString() } = await jsm.streams.info(stream);
  telemetry.streamMessages.record(state.messages, { stream });
  telemetry.streamBytes.record(state.bytes, { stream });
  telemetry.streamLimit.record(config.max_bytes, { stream });
  telemetry.streamFirst.record(state.first_seq, { stream });
  if (streams[stream].retention === "workqueue") {
    // By the broker's clock where it tells the time: ours may differ.
    const age = state.messages === 0 ? 0 : Date.parse(ts) - Date.parse(state.first_ts);
    telemetry.oldest.record(Math.max(0, age / 1000), { stream });
    return;
  }
  // A schedule leaves its stream when it fires or is replaced: what is gone there was not lost.
  if ("allowSchedules" in streams[stream]) return;
  await Promise.all(durablesOf(stream).map((durable) => measureLag(connection, durable, state, positions)));
};

/** A stream that forgets its oldest asks nobody whether they have had it. */
const measureLag = async (
  { jsm, log, telemetry }: Connection,
  durable: DurableName,
  { first_seq: first, last_seq: last, messages }: StreamInfo["state"],
  positions?: Positions,
): Promise<void> => {
  const { stream } = durables[durable];
  const position = positionOf(await jsm.consumers.info(stream, durable), { last_seq: last });
  telemetry.lag.record(messages === 0 ? 0 : Math.min(1, (last - position) / (last - first + 1)), { durable });
  const lost = (await positions?.advance(durable, position, { first, last })) ?? 0;
  if (lost === 0) return;
  telemetry.lost.add(lost, { durable });
  log.error({ durable, stream, lost, first }, "a durable lost messages: the stream forgot them before it had them");
};
