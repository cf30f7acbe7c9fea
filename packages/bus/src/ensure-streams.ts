import {
  type BucketName,
  buckets,
  type DurableName,
  duplicateWindowMs,
  durables,
  type StreamName,
  streams,
} from "@herald/contracts";
import { natsConfig, variables } from "@herald/kit";
import { type ConsumerConfig, JetStreamApiError, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { z } from "zod";
import { isForbidden, isNotEnabled, notConnected, undefinedIfMissing } from "./bus-error.ts";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { consumedStream, consumerPrefix } from "./permissions/index.ts";
import { gibibyte, isOutOfStorage, minStorage, smallerThanStored, tooLittleStorage, total } from "./stream-sizes.ts";

export type EnsureOptions = {
  /** Copies of every stream: 1 locally, 3 in production. */
  readonly replicas: 1 | 3;
  /** A share of every declared size, 1 when absent: all of them together are 25.5 GiB. */
  readonly sizeFactor?: number;
};

/**
 * Creates the declared streams, buckets and durables, and updates existing ones. Safe to repeat, also concurrently. Needs an admin
 * credential. Deletes nothing: it reports undeclared durables, and settings that cannot be changed in place, as problems; also a size that
 * is less than what a stream holds, which would remove messages. Throws if the broker has no room for all, with what it took.
 */
export const ensureStreams = async (bus: Bus, options: EnsureOptions) => {
  const connection = connectionOf(bus);
  if (!connection.connected) throw notConnected();
  const { jsm } = connection;
  /** Names of streams, `KV_` streams and durables; `problems` describes differences that an operator must resolve. */
  const report = {
    created: [] as string[],
    updated: [] as string[],
    unchanged: [] as string[],
    problems: [] as string[],
  };
  const file = (name: string, { outcome, problems }: EnsureResult) => {
    if (outcome !== "failed") report[outcome].push(name);
    report.problems.push(...problems.map((problem) => `${name}: ${problem}`));
  };
  const wanted = wantedStreams(options);
  const existing = new Map<string, StreamInfo>();
  for (const { name } of wanted) {
    const info = await undefinedIfMissing(jsm.streams.info(name));
    if (info) existing.set(name, info);
  }
  const refused: string[] = [];
  // What becomes smaller makes room for the others.
  const shrinks = ({ name, max_bytes }: NamedStream) => (existing.get(name)?.config.max_bytes ?? 0) > max_bytes;
  for (const config of wanted.toSorted((one, other) => Number(shrinks(other)) - Number(shrinks(one)))) {
    const { name } = config;
    const found = existing.get(name);
    try {
      if (found) {
        const tooSmall = smallerThanStored(found, config, total(wanted));
        const size = tooSmall ? found.config.max_bytes : config.max_bytes;
        const update = (changed: StreamConfig) => jsm.streams.update(name, changed);
        const result = await change(found.config, { ...config, max_bytes: size }, update);
        file(name, { ...result, problems: [...result.problems, ...(tooSmall ? [tooSmall] : [])] });
        found.config.max_bytes = size;
      } else {
        existing.set(name, await jsm.streams.add(config));
        report.created.push(name);
      }
    } catch (error) {
      if (!isOutOfStorage(error)) throw error;
      refused.push(name);
    }
  }
  if (refused.length > 0) {
    const taken = total([...existing.values()].map(({ config }) => config));
    throw new Error(tooLittleStorage({ asked: total(wanted), taken, refused }));
  }
  for (const name of Object.keys(durables) as DurableName[]) file(name, await ensureDurable(connection, name));
  for (const name of streamNames)
    for await (const { name: durable, config } of jsm.consumers.list(name)) {
      const declared = durable in durables && durables[durable as DurableName].stream === name;
      const external = name === consumedStream && durable.startsWith(consumerPrefix);
      if (config.durable_name === undefined || declared || external) continue;
      report.problems.push(
        `${durable}: a durable of ${name} that is not declared; on a work queue it keeps messages from others`,
      );
    }
  return report;
};

type EnsureResult = {
  readonly outcome: "created" | "updated" | "unchanged" | "failed";
  readonly problems: string[];
};
type NamedStream = Partial<StreamConfig> & Pick<StreamConfig, "name" | "max_bytes">;

const streamNames = Object.keys(streams) as StreamName[];

/** The streams as they are declared, also those of buckets. */
export const wantedStreams = (options: EnsureOptions): NamedStream[] => [
  ...streamNames.map((name) => streamConfig(name, options)),
  ...(Object.keys(buckets) as BucketName[]).map((name) => bucketConfig(name, options)),
];

const unlimited = -1;

const streamConfig = (name: StreamName, { replicas, sizeFactor = 1 }: EnsureOptions): NamedStream => {
  const declared = { ...defaults, ...streams[name] };
  return {
    name,
    subjects: [...declared.subjects],
    retention: declared.retention,
    discard: declared.retention === "workqueue" ? "new" : "old",
    storage: "file",
    num_replicas: replicas,
    max_bytes: Math.floor(declared.maxBytes * sizeFactor),
    max_age: nanos(declared.maxAgeMs),
    max_msgs_per_subject: declared.maxMessagesPerSubject,
    discard_new_per_subject: declared.discardNewPerSubject,
    allow_direct: declared.allowDirect,
    allow_atomic: declared.allowAtomicPublish,
    allow_msg_schedules: declared.allowSchedules,
    allow_msg_ttl: declared.allowMessageTtl,
    // A schedule replaces an earlier one with a rollup header.
    allow_rollup_hdrs: declared.allowSchedules,
    duplicate_window: nanos(duplicateWindowMs),
  };
};

const defaults = {
  maxAgeMs: 0,
  maxMessagesPerSubject: unlimited,
  discardNewPerSubject: false,
  allowDirect: false,
  allowAtomicPublish: false,
  allowSchedules: false,
  allowMessageTtl: false,
};

/** The same configuration as the client's `Kvm.create`, so that every NATS tool shows a bucket. */
const bucketConfig = (name: BucketName, { replicas, sizeFactor = 1 }: EnsureOptions): NamedStream => {
  const declared = { ttlMs: 0, markerTtlMs: 0, allowAtomicPublish: false, ...buckets[name] };
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    retention: "limits",
    discard: "discard" in declared ? "old" : "new",
    storage: "file",
    num_replicas: replicas,
    max_bytes: Math.floor(declared.maxBytes * sizeFactor),
    max_age: nanos(declared.ttlMs),
    max_msgs_per_subject: 1,
    allow_direct: true,
    allow_atomic: declared.allowAtomicPublish,
    allow_rollup_hdrs: true,
    allow_msg_ttl: declared.markerTtlMs > 0,
    subject_delete_marker_ttl: nanos(declared.markerTtlMs),
  };
};

const ensureDurable = async ({ jsm }: BusConnection, name: DurableName): Promise<EnsureResult> => {
  const { stream, filters, ackWaitMs, maxAckPending } = durables[name];
  // No `backoff`: its first entry would silently replace the ack wait. No limit of deliveries: the bus has its own guard.
  const wanted: Partial<ConsumerConfig> = {
    durable_name: name,
    ack_policy: "explicit",
    deliver_policy: "all",
    replay_policy: "instant",
    ...(filters.length === 1 ? { filter_subject: filters[0] } : { filter_subjects: [...filters] }),
    ack_wait: nanos(ackWaitMs),
    max_ack_pending: maxAckPending,
    max_deliver: unlimited,
  };
  const found = await undefinedIfMissing(jsm.consumers.info(stream, name));
  if (found === undefined) {
    try {
      await jsm.consumers.add(stream, wanted);
      return { outcome: "created", problems: [] };
    } catch (error) {
      return { outcome: "failed", problems: [`not created: ${reasonOf(error)}`] };
    }
  }
  const result = await change(found.config, wanted, (changed) => jsm.consumers.update(stream, name, changed));
  if (found.config.backoff !== undefined)
    result.problems.push("has a backoff, which replaces its ack wait: delete it and run the bootstrap again");
  return result;
};

/** Updates the changed fields. If that fails, updates them one by one, so that an immutable field does not block the others. */
const change = async <Config extends object>(
  have: Config,
  wanted: Partial<Config>,
  update: (config: Config) => Promise<unknown>,
): Promise<EnsureResult> => {
  const fields = (Object.keys(wanted) as (keyof Config & string)[]).filter(
    (field) => !same(have[field], wanted[field]),
  );
  if (fields.length === 0) return { outcome: "unchanged", problems: [] };
  try {
    await update({ ...have, ...wanted });
    return { outcome: "updated", problems: [] };
  } catch (error) {
    if (isOutOfStorage(error)) throw error;
    const problems: string[] = [];
    let config = have;
    for (const field of fields) {
      try {
        await update({ ...config, [field]: wanted[field] });
        config = { ...config, [field]: wanted[field] };
      } catch (error) {
        problems.push(
          `${field} is ${JSON.stringify(have[field])}, declared is ${JSON.stringify(wanted[field])}: ${reasonOf(error)}`,
        );
      }
    }
    return { outcome: problems.length < fields.length ? "updated" : "unchanged", problems };
  }
};

/** The server omits fields that are false, zero or empty. */
const same = (have: unknown, wanted: unknown): boolean =>
  JSON.stringify(have || null) === JSON.stringify(wanted || null);

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The environment variables of the bootstrap step. */
export const BootstrapConfig = z.object({
  ...natsConfig,
  /** Copies of every stream: 3 with three brokers, as in production. */
  HERALD_NATS_REPLICAS: variables.choice("1", "3").default("1"),
  /** Disk for all streams of a broker, divided among them. At most its `max_file_store`, which infra/nats.conf takes from this variable. */
  HERALD_NATS_STORAGE: variables.byteSize({ min: minStorage }).default(8 * gibibyte),
});

/** Why the bootstrap step failed, and what its operator can do. */
export const whyNotMade = (error: unknown): string => {
  if (isNotEnabled(error))
    return "JetStream is not enabled for this user: see `jetstream` in infra/nats.conf, for the server and for the account";
  if (isForbidden(error))
    return "the user may not make streams: run this as herald-bootstrap of infra/nats.conf, and compare that file after an upgrade";
  const reason = reasonOf(error);
  if (error instanceof JetStreamApiError && /replicas > 1|no suitable peers/.test(reason))
    return `HERALD_NATS_REPLICAS is more than there are brokers: ${reason}`;
  return reason;
};
