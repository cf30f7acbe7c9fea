import { type BucketName, buckets, type DurableName, durables, type StreamName, streams } from "@herald/contracts";
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { apiCodes, notConnected } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { consumedStream, consumerPrefix } from "./permissions/index.ts";

export type EnsureOptions = {
  /** Copies of every stream: 1 locally, 3 in production. */
  readonly replicas: 1 | 3;
  /** A share of every declared size, for a machine with less disk than 20 GiB; 1 when absent. */
  readonly sizeFactor?: number;
};

/** Names of streams, `KV_` streams and durables. */
export type Report = {
  readonly created: readonly string[];
  readonly updated: readonly string[];
  readonly unchanged: readonly string[];
  /** What is not as declared and cannot be made so, in words: each is for a person to decide. */
  readonly problems: readonly string[];
};

/**
 * Makes the declared streams, buckets and durables, and brings existing ones up to date. Safe to run again, and to run twice at once.
 * Needs an admin credential. Deletes nothing: what cannot be changed in place, and durables that are not declared, are problems.
 */
export const ensureStreams = async (bus: Bus, options: EnsureOptions): Promise<Report> => {
  const connection = connectionOf(bus);
  if (!connection.connected) throw notConnected();
  const report = {
    created: [] as string[],
    updated: [] as string[],
    unchanged: [] as string[],
    problems: [] as string[],
  };
  const file = async (name: string, made: Promise<EnsureResult>) => {
    const { outcome, problems } = await made;
    if (outcome !== "failed") report[outcome].push(name);
    report.problems.push(...problems.map((problem) => `${name}: ${problem}`));
  };
  for (const name of Object.keys(streams) as StreamName[]) {
    await file(name, ensureStream(connection, streamConfig(name, options)));
  }
  for (const name of Object.keys(buckets) as BucketName[]) {
    const config = bucketConfig(name, options);
    await file(config.name, ensureStream(connection, config));
  }
  for (const name of Object.keys(durables) as DurableName[]) {
    await file(name, ensureDurable(connection, durables[name].stream, durableConfig(name)));
  }
  for (const name of Object.keys(streams) as StreamName[]) {
    for (const stranger of await undeclaredDurables(connection, name)) {
      report.problems.push(
        `${stranger}: a durable of ${name} that is not declared; on a work queue it keeps messages from others`,
      );
    }
  }
  return report;
};

type EnsureResult = {
  readonly outcome: "created" | "updated" | "unchanged" | "failed";
  readonly problems: readonly string[];
};
type NamedStream = Partial<StreamConfig> & { readonly name: string };

const unlimited = -1;

export const streamConfig = (name: StreamName, { replicas, sizeFactor = 1 }: EnsureOptions): NamedStream => {
  const declared = { ...defaults, ...streams[name] };
  return {
    name,
    subjects: [...declared.subjects],
    retention: declared.retention === "workqueue" ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
    discard: declared.discard === "new" ? DiscardPolicy.New : DiscardPolicy.Old,
    storage: StorageType.File,
    num_replicas: replicas,
    max_bytes: Math.round(declared.maxBytes * sizeFactor),
    max_age: nanos(declared.maxAgeMs),
    max_msgs_per_subject: declared.maxMessagesPerSubject,
    discard_new_per_subject: declared.discardNewPerSubject,
    allow_direct: declared.allowDirect,
    allow_atomic: declared.allowAtomicPublish,
    allow_msg_schedules: declared.allowSchedules,
    allow_msg_ttl: declared.allowMessageTtl,
    // Schedules replace each other by it.
    allow_rollup_hdrs: declared.allowSchedules,
    duplicate_window: nanos(declared.duplicateWindowMs),
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

/** What the client's own `Kvm.create` would make, so that every NATS tool sees a bucket. */
export const bucketConfig = (name: BucketName, { replicas, sizeFactor = 1 }: EnsureOptions): NamedStream => {
  const declared = { ttlMs: 0, markerTtlMs: 0, allowAtomicPublish: false, ...buckets[name] };
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    retention: RetentionPolicy.Limits,
    discard: "discard" in declared ? DiscardPolicy.Old : DiscardPolicy.New,
    storage: StorageType.File,
    num_replicas: replicas,
    max_bytes: Math.round(declared.maxBytes * sizeFactor),
    max_age: nanos(declared.ttlMs),
    max_msgs_per_subject: declared.history,
    allow_direct: true,
    allow_atomic: declared.allowAtomicPublish,
    allow_rollup_hdrs: true,
    allow_msg_ttl: declared.markerTtlMs > 0,
    subject_delete_marker_ttl: nanos(declared.markerTtlMs),
  };
};

/** No `backoff`: its first entry would silently replace the ack wait. No limit of deliveries: the bus has its own guard. */
export const durableConfig = (name: DurableName): Partial<ConsumerConfig> => {
  const { filters, ackWaitMs, maxAckPending, from } = durables[name];
  return {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: from === "all" ? DeliverPolicy.All : DeliverPolicy.New,
    replay_policy: ReplayPolicy.Instant,
    ...(filters.length === 1 ? { filter_subject: filters[0] } : { filter_subjects: [...filters] }),
    ack_wait: nanos(ackWaitMs),
    max_ack_pending: maxAckPending,
    max_deliver: unlimited,
  };
};

const ensureStream = async ({ jsm }: Connection, wanted: NamedStream): Promise<EnsureResult> => {
  const found = await undefinedIfMissing(jsm.streams.info(wanted.name));
  if (found === undefined) {
    await jsm.streams.add(wanted);
    return { outcome: "created", problems: [] };
  }
  return change(found.config, wanted, (config) => jsm.streams.update(wanted.name, config));
};

const ensureDurable = async (
  { jsm }: Connection,
  stream: StreamName,
  wanted: Partial<ConsumerConfig>,
): Promise<EnsureResult> => {
  const name = wanted.durable_name ?? "";
  const found = await undefinedIfMissing(jsm.consumers.info(stream, name));
  if (found === undefined) {
    try {
      await jsm.consumers.add(stream, wanted);
      return { outcome: "created", problems: [] };
    } catch (error) {
      return { outcome: "failed", problems: [`not created: ${reasonOf(error)}`] };
    }
  }
  const { config } = found;
  const backoff =
    config.backoff === undefined
      ? []
      : ["has a backoff, which replaces its ack wait: delete it and run the bootstrap again"];
  const made = await change(config, wanted, (changed) => jsm.consumers.update(stream, name, changed));
  return { outcome: made.outcome, problems: [...made.problems, ...backoff] };
};

/** Updates what differs. One thing that cannot be changed must not keep the rest from it, so each is tried alone then. */
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
  } catch {
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

/** The server leaves out what is false, zero or empty. */
const same = (have: unknown, wanted: unknown): boolean =>
  JSON.stringify(have || null) === JSON.stringify(wanted || null);

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const undefinedIfMissing = async <Info>(asked: Promise<Info>): Promise<Info | undefined> => {
  try {
    return await asked;
  } catch (error) {
    const missing: readonly number[] = [apiCodes.streamNotFound, apiCodes.consumerNotFound];
    if (error instanceof JetStreamApiError && missing.includes(error.code)) return undefined;
    throw error;
  }
};

const undeclaredDurables = async ({ jsm }: Connection, stream: StreamName): Promise<string[]> => {
  const strangers: string[] = [];
  for await (const { name, config } of jsm.consumers.list(stream)) {
    const declared = name in durables && durables[name as DurableName].stream === stream;
    const consumers = stream === consumedStream && name.startsWith(consumerPrefix);
    if (config.durable_name !== undefined && !declared && !consumers) strangers.push(name);
  }
  return strangers;
};
