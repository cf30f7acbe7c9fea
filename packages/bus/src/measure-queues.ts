import { type DurableName, durables, type StatusReport, type StreamName, streams } from "@herald/contracts";
import { type Repeating, repeat } from "@herald/kit";
import type { StreamInfo } from "@nats-io/jetstream";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { type BusService, ownerOf, streamsMeasuredBy } from "./permissions/index.ts";
import { durablesOf, positionOf } from "./stream-position.ts";

/** Prometheus' default scrape interval; each costs one small request per durable and stream. */
const defaultIntervalMs = 15_000;

/** Stores where each durable was, to find what it missed while no process ran. */
export type Positions = {
  /**
   * Stores that the durable has read everything up to `position` of a stream that holds `first` to `last`. Returns how many messages, at
   * most, were removed before it read them; reports each once.
   */
  readonly advance: (durable: DurableName, position: number, kept: { first: number; last: number }) => Promise<number>;
};

export type MeasureOptions = { readonly everyMs?: number; readonly positions?: Positions };

/** What was measured last, by stream and by durable. */
type Measured = {
  readonly streams: Map<string, StatusReport["streams"][number]>;
  readonly durables: Map<string, StatusReport["durables"][number]>;
};

export type Measuring = Repeating & {
  /** The last measurements; none before the first. */
  readonly latest: () => Pick<StatusReport, "streams" | "durables">;
};

/**
 * Updates the gauges of a service's durables, and of the streams that it measures, every `everyMs`. All replicas report the same. While
 * the broker is unavailable the gauges keep their values.
 */
export const measureQueues = (bus: Bus, service: BusService, options: MeasureOptions = {}): Measuring => {
  const connection = connectionOf(bus);
  const { everyMs = defaultIntervalMs, positions } = options;
  const own = (Object.keys(durables) as DurableName[]).filter((durable) => ownerOf(durable) === service);
  const measured = streamsMeasuredBy(service);
  const last: Measured = { streams: new Map(), durables: new Map() };
  const measuring = repeat("measure the queues", everyMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const measuring = [
      ...own.map((durable) => measureDurable(connection, durable, last)),
      ...measured.map((stream) => measureStream(connection, stream, last, positions)),
    ];
    // A missing durable, or a stream without a leader, must not block the other measurements.
    const results = await Promise.race([Promise.allSettled(measuring), ended(signal)]);
    for (const one of results)
      if (one.status === "rejected") connection.log.debug({ err: one.reason }, "could not measure a queue");
  });
  return {
    ...measuring,
    latest: () => ({ streams: [...last.streams.values()], durables: [...last.durables.values()] }),
  };
};

/** A stop does not wait for a broker that does not answer. */
const ended = (signal: AbortSignal): Promise<[]> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve([]), { once: true }));

const measureDurable = async (
  { jsm, telemetry }: Connection,
  durable: DurableName,
  { durables: last }: Measured,
): Promise<void> => {
  const info = await jsm.consumers.info(durables[durable].stream, durable);
  telemetry.pending.record(info.num_pending, { durable });
  telemetry.ackPending.record(info.num_ack_pending, { durable });
  const measuredAt = new Date().toISOString();
  last.set(durable, {
    name: durable,
    pending: info.num_pending,
    in_progress: info.num_ack_pending,
    measured_at: measuredAt,
  });
};

const measureStream = async (
  connection: Connection,
  stream: StreamName,
  { streams: last }: Measured,
  positions?: Positions,
): Promise<void> => {
  const { jsm, telemetry } = connection;
  const { config, state, ts = new Date().toISOString() } = await jsm.streams.info(stream);
  telemetry.streamMessages.record(state.messages, { stream });
  telemetry.streamBytes.record(state.bytes, { stream });
  telemetry.streamLimit.record(config.max_bytes, { stream });
  telemetry.streamFirst.record(state.first_seq, { stream });
  const measuredAt = new Date().toISOString();
  const { messages, bytes } = state;
  last.set(stream, { name: stream, messages, bytes, max_bytes: config.max_bytes, measured_at: measuredAt });
  if (streams[stream].retention === "workqueue") {
    // By the broker's clock where the reply contains it: ours may differ.
    const age = state.messages === 0 ? 0 : Date.parse(ts) - Date.parse(state.first_ts);
    telemetry.oldest.record(Math.max(0, age / 1000), { stream });
    return;
  }
  // A schedule leaves its stream when it fires or is replaced: missing messages were not lost.
  if ("allowSchedules" in streams[stream]) return;
  await Promise.all(durablesOf(stream).map((durable) => measureLag(connection, durable, state, positions)));
};

/** A stream with limits removes its oldest messages although a durable may not have read them. */
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
  log.error(
    { durable, stream, lost, first },
    "a durable lost messages: the stream removed them before the durable read them",
  );
};
