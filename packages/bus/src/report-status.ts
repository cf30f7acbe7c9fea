import { once } from "node:events";
import { hostname } from "node:os";
import {
  type DurableName,
  durables,
  type ServiceName,
  StatusReport,
  type StreamName,
  streams,
} from "@herald/contracts";
import { type PeriodicTask, runEvery, version } from "@herald/kit";
import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream";
import { openBucket } from "./bucket.ts";
import { type Bus, connectionOf } from "./connect.ts";
import { type BusService, durablesOf, serviceOf, streamsMeasuredBy } from "./permissions/index.ts";

/** Each report is one fsynced message. */
const reportEveryMs = 5_000;
/** A change is reported at once: a finished start must not look unfinished for five seconds. */
const checkEveryMs = 500;

export type StatusReportOptions = {
  readonly service: ServiceName;
  /** The checks that fail now. A change is reported at once. */
  readonly failing: () => Promise<StatusReport["failing"]>;
  /** The ids of the process's keys, by variable. */
  readonly keys: NonNullable<StatusReport["keys"]>;
  readonly proxy?: string | undefined;
  /** Describes the rest of the process's state, for a report. If it throws, this report is skipped. */
  readonly look: () => Promise<
    Omit<
      StatusReport,
      "service" | "instance" | "version" | "startedAt" | "at" | "brokerMs" | "failing" | "keys" | "proxy"
    >
  >;
  readonly everyMs?: number;
};

/** A restarted container keeps its host name and process id, so its next report replaces the last one. */
const instance = `${hostname().replaceAll(/[^A-Za-z0-9_-]/g, "-")}-${process.pid}`;

/** Writes the state of this process into a bucket that the gateway watches: when it changes, and every `everyMs`. `stop` removes it. */
export const reportStatus = (
  bus: Bus,
  { service, failing, keys, proxy, look, everyMs = reportEveryMs }: StatusReportOptions,
) => {
  const connection = connectionOf(bus);
  const bucket = openBucket(bus, "push_status", StatusReport);
  const key = `${service}.${instance}`;
  const startedAt = new Date().toISOString();
  let brokerMs: number | undefined;
  let reported: string | undefined;
  let dueAt = 0;
  const checkMs = Math.min(checkEveryMs, everyMs);
  const reporting = runEvery("report the status", checkMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const now = await failing();
    const state = now.map(({ check, since }) => `${check} ${since}`).join();
    if (state === reported && performance.now() < dueAt) return;
    const found = await look();
    if (signal.aborted) return;
    const begun = performance.now();
    const report = {
      service,
      instance,
      version,
      startedAt,
      at: new Date().toISOString(),
      failing: now,
      keys,
      ...(proxy !== undefined && { proxy }),
      ...found,
    };
    await bucket.put(key, { ...report, ...(brokerMs !== undefined && { brokerMs }) });
    reported = state;
    dueAt = performance.now() + everyMs;
    brokerMs = Math.round((performance.now() - begun) * 10) / 10;
  });
  return {
    stop: async (): Promise<void> => {
      await reporting.stop();
      // Without a broker the report becomes stale instead.
      await bucket.delete(key).catch(() => {});
    },
  };
};

/** Prometheus' default scrape interval; each costs one small request per durable and stream. */
const measureEveryMs = 15_000;

/** Stores the position of each durable, to detect messages that it missed while no process ran. */
export type Positions = {
  /**
   * Stores that the durable has read everything up to `position` of a stream that holds `first` to `last`. Returns the maximum number of
   * messages that were removed before the durable read them; counts each once.
   */
  readonly advance: (durable: DurableName, position: number, kept: { first: number; last: number }) => Promise<number>;
};

export type Measuring = PeriodicTask & {
  /** The last measurements; none before the first. */
  readonly latest: () => Pick<StatusReport, "streams" | "durables">;
};

/**
 * Updates the gauges of a service's durables, and of the streams that it measures, every `everyMs`. All replicas report the same. While
 * the broker is unavailable the gauges keep their values.
 */
export const measureQueues = (
  bus: Bus,
  service: BusService,
  { everyMs = measureEveryMs, positions }: { readonly everyMs?: number; readonly positions?: Positions } = {},
): Measuring => {
  const connection = connectionOf(bus);
  const { jsm, log, telemetry } = connection;
  const lastStreams = new Map<string, StatusReport["streams"][number]>();
  const lastDurables = new Map<string, StatusReport["durables"][number]>();

  const measureDurable = async (durable: DurableName): Promise<void> => {
    const info = await jsm.consumers.info(durables[durable].stream, durable);
    const { num_pending: pending, num_ack_pending: inProgress } = info;
    telemetry.pending.record(pending, { durable });
    telemetry.ackPending.record(inProgress, { durable });
    const measuredAt = new Date().toISOString();
    lastDurables.set(durable, { name: durable, pending, in_progress: inProgress, measured_at: measuredAt });
  };

  const measureStream = async (stream: StreamName): Promise<void> => {
    const { config, state, ts = new Date().toISOString() } = await jsm.streams.info(stream);
    const { messages, bytes } = state;
    telemetry.streamMessages.record(messages, { stream });
    telemetry.streamBytes.record(bytes, { stream });
    telemetry.streamLimit.record(config.max_bytes, { stream });
    telemetry.streamFirst.record(state.first_seq, { stream });
    const measuredAt = new Date().toISOString();
    lastStreams.set(stream, { name: stream, messages, bytes, max_bytes: config.max_bytes, measured_at: measuredAt });
    if (streams[stream].retention === "workqueue") {
      // Uses the broker's clock if the reply contains its time: ours may differ.
      const age = messages === 0 ? 0 : Date.parse(ts) - Date.parse(state.first_ts);
      telemetry.oldest.record(Math.max(0, age / 1000), { stream });
      return;
    }
    // A schedule leaves its stream when it fires or is replaced: missing messages were not lost.
    if ("allowSchedules" in streams[stream]) return;
    await Promise.all(durablesOf(stream).map((durable) => measureLag(durable, state)));
  };

  /** A stream with limits removes its oldest messages although a durable may not have read them. */
  const measureLag = async (
    durable: DurableName,
    { first_seq: first, last_seq: last, messages }: StreamInfo["state"],
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

  const own = (Object.keys(durables) as DurableName[]).filter((durable) => serviceOf(durable) === service);
  const measured = streamsMeasuredBy(service);
  const measuring = runEvery("measure the queues", everyMs, log, async (signal) => {
    if (!connection.connected) return;
    // A missing durable, or a stream without a leader, must not block the other measurements.
    const all = Promise.allSettled([...own.map(measureDurable), ...measured.map(measureStream)]);
    // `stop` must not wait for a broker that does not answer.
    const ended = once(signal, "abort").then(() => []);
    for (const one of await Promise.race([all, ended]))
      if (one.status === "rejected") log.debug({ err: one.reason }, "could not measure a queue");
  });
  return {
    ...measuring,
    latest: () => ({ streams: [...lastStreams.values()], durables: [...lastDurables.values()] }),
  };
};

/**
 * The sequence up to which a durable has settled everything it reads. The stream's state must be older than the consumer's info: if
 * nothing is pending, the durable has settled all messages that the stream held then, including those outside its filter.
 */
export const positionOf = (
  { num_pending, num_ack_pending, ack_floor }: Pick<ConsumerInfo, "num_pending" | "num_ack_pending" | "ack_floor">,
  { last_seq }: Pick<StreamInfo["state"], "last_seq">,
): number => (num_pending === 0 && num_ack_pending === 0 ? last_seq : ack_floor.stream_seq);
