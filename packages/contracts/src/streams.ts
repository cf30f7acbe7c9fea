/**
 * Streams, buckets and durables as data. The bootstrap step creates them with its own credential; services create none. Durations are in
 * milliseconds, sizes in bytes.
 */

const day = 86_400_000;
const mebibyte = 1_048_576;

/** How long message ids are deduplicated in every stream. Only an optimisation: ids in the database prevent duplicates. */
export const duplicateWindowMs = 120_000;

type StreamDefinition = {
  readonly subjects: readonly string[];
  /** A full work queue refuses messages; a full log removes its oldest. */
  readonly retention: "workqueue" | "limits";
  readonly maxBytes: number;
  readonly maxAgeMs?: number;
  readonly maxMessagesPerSubject?: number;
  /** Refuses a message even if only its own subject is full. */
  readonly discardNewPerSubject?: boolean;
  readonly allowDirect?: boolean;
  readonly allowAtomicPublish?: boolean;
  readonly allowSchedules?: boolean;
  readonly allowMessageTtl?: boolean;
};

export const streams = {
  /** Commands. Direct gets read notifications that are accepted but not stored in the database yet. */
  PUSH_CMD: {
    subjects: ["push.cmd.v1.>"],
    retention: "workqueue",
    maxBytes: 4096 * mebibyte,
    allowDirect: true,
    allowAtomicPublish: true,
  },
  /** Groups of small sends, and repeated small sends. Direct gets read notifications that are accepted but not stored in the database yet. */
  PUSH_SEND: {
    subjects: ["push.send.v1.>"],
    retention: "workqueue",
    maxBytes: 2048 * mebibyte,
    allowDirect: true,
  },
  /** One message per project whose small sends wait in the ledger. The process that holds it sends them, oldest first. */
  PUSH_DRAIN: {
    subjects: ["push.drain.v1.>"],
    retention: "workqueue",
    maxBytes: 64 * mebibyte,
    maxMessagesPerSubject: 1,
    discardNewPerSubject: true,
  },
  /** Opens, separate from sends, so that neither a flood of opens nor unavailable analytics blocks sends. Room for about seven million. */
  PUSH_OPENS: {
    subjects: ["push.opens.v1.>"],
    retention: "workqueue",
    maxBytes: 1024 * mebibyte,
  },
  /**
   * Receipts and dismissals, separate from opens: those of a broadcast arrive within half a minute, and opens must not wait behind them.
   * Beyond some three million, devices report later.
   */
  PUSH_RECEIPTS: {
    subjects: ["push.receipts.v1.>"],
    retention: "workqueue",
    maxBytes: 512 * mebibyte,
  },
  /** Lines of imported files. An import has room for sixteen chunks: a slow registry slows each sender, and no project fills it. */
  PUSH_IMPORT: {
    subjects: ["push.import.v1.>"],
    retention: "workqueue",
    maxBytes: 1024 * mebibyte,
    maxMessagesPerSubject: 16,
    discardNewPerSubject: true,
    allowDirect: true,
  },
  /** Delivery batches. Eight waiting batches of one lane, platform and project are enough to keep it busy and few enough to be fair. */
  PUSH_DELIVER: {
    subjects: ["push.deliver.v1.>"],
    retention: "workqueue",
    maxBytes: 4096 * mebibyte,
    maxMessagesPerSubject: 8,
    discardNewPerSubject: true,
  },
  /** Scheduled messages and the messages that they publish when due. The server does not allow discard new with schedules. */
  PUSH_SCHEDULE: {
    subjects: ["push.sched.v1.>", "push.due.v1.>"],
    retention: "limits",
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 35 * day,
    allowSchedules: true,
    allowMessageTtl: true,
  },
  /** Events, for all authorized consumers, and replayable. */
  PUSH_EVENTS: {
    subjects: ["push.evt.v1.>"],
    retention: "limits",
    maxBytes: 8192 * mebibyte,
    maxAgeMs: 30 * day,
    allowDirect: true,
    allowAtomicPublish: true,
  },
  /** Dead letters: messages that could not be processed, with their reasons. */
  PUSH_DLQ: {
    subjects: ["push.dlq.v1.>"],
    retention: "limits",
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 30 * day,
    allowDirect: true,
  },
} as const satisfies Record<string, StreamDefinition>;

export type StreamName = keyof typeof streams;

type BucketDefinition = {
  readonly maxBytes: number;
  /** The behaviour of a full bucket: refuse entries (absent) or remove the oldest. */
  readonly discard?: "old";
  /** The time to live of entries; absent: unlimited. */
  readonly ttlMs?: number;
  /** A TTL for a single key requires the bucket's limit markers; this is their lifetime in ms. */
  readonly markerTtlMs?: number;
  /** Allows atomic batches of entries. */
  readonly allowAtomicPublish?: boolean;
};

export const buckets = {
  /** Key: hash of a project token, value: TokenRecord. The gateway watches it to authenticate. */
  push_tokens: { maxBytes: 256 * mebibyte },
  /** Key: SHA-256 of an operator's token, value: OperatorRecord. The gateway watches it. Room for some ten thousand operators with few grants. */
  push_operators: { maxBytes: 16 * mebibyte },
  /** Keys `session.<hash>` and `code.<hash>`, value: SessionRecord. Entries expire on their own. */
  push_sessions: { maxBytes: 16 * mebibyte, markerTtlMs: 60_000 },
  /** Keys `<project>.settings` and `<project>.rules`, by registry: gateway and dispatch need them while its database is unavailable. */
  push_projects: { maxBytes: 192 * mebibyte },
  /** Key: project, value: ProvidersRecord, by dispatch: what gateway and registry need of a project's providers. */
  push_providers: { maxBytes: 64 * mebibyte },
  /** Key `<project>.<name>`, value: TemplateRecord. The gateway reads it when a send names a template. A template has at most 32 KiB. */
  push_content: { maxBytes: 256 * mebibyte },
  /**
   * Keys `<project>.<activity>`, value: ActivityRecord, for 14 h, and `active.<project>.<activity>`: counts the activities that run. Not in
   * `push_content`, which registry alone writes and which has no time to live, nor in `push_idempotency`, which removes its oldest entries.
   * A record has at most 16 KiB, a project 64 MiB of them: 16 projects can have all.
   */
  push_activities: { maxBytes: 1024 * mebibyte, markerTtlMs: 1_000 },
  /**
   * Key: hash of project, route and Idempotency-Key, value: IdempotencyRecord. Kept a little over 24 h. Beyond 6.5 million records the
   * oldest are removed, because refusing requests is worse than repeating one after many hours.
   */
  push_idempotency: {
    maxBytes: 1024 * mebibyte,
    discard: "old",
    ttlMs: day + 3_600_000,
    markerTtlMs: 60_000,
    allowAtomicPublish: true,
  },
  /** Key: a dead letter's sequence, value: ReplayRecord. Outlives the dead letter by a day. */
  push_replays: { maxBytes: 64 * mebibyte, ttlMs: 31 * day },
  /**
   * Key: `<service>.<instance>`, value: StatusReport. A process that ended without a clean stop is shown for ten minutes: long enough for
   * an engineer on call to see it, and short enough that a replaced replica does not look like a failure. Keys
   * `<service>.suspect.<what>`: a process is handling what may be the reason why processes died.
   */
  push_status: { maxBytes: 16 * mebibyte, discard: "old", ttlMs: 600_000 },
} as const satisfies Record<string, BucketDefinition>;

export type BucketName = keyof typeof buckets;

/**
 * An unsettled message without a `working()` signal is redelivered to another process after this time. With 6 s, messages of a killed
 * process are redelivered within 10 s, restart included. A live process signals every third of this time, however slow its providers are,
 * and may stall for half of it.
 */
const ackWaitMs = 6_000;

type DurableDefinition = {
  readonly stream: StreamName;
  readonly filters: readonly string[];
  /** Redelivered when neither settled nor signalled with `working()` for this long. */
  readonly ackWaitMs: number;
  /** Large, because blocked messages count: with a small value, one project's full queue would block all others. */
  readonly maxAckPending: number;
};

const durable = <const Stream extends StreamName>(stream: Stream, ...filters: readonly string[]) => ({
  stream,
  filters,
  ackWaitMs,
  maxAckPending: 20_000,
});

/** Every durable consumer. Its name is state: a renamed durable replays its stream, so a rename needs a migration. */
export const durables = {
  "dispatch-start": durable("PUSH_CMD", "push.cmd.v1.dispatch.send.*.*"),
  "dispatch-send-groups": durable("PUSH_SEND", "push.send.v1.group.*"),
  "dispatch-single-sends": durable("PUSH_SEND", "push.send.v1.one.*"),
  "dispatch-drain": durable("PUSH_DRAIN", "push.drain.v1.*"),
  "dispatch-join-activities": durable("PUSH_CMD", "push.cmd.v1.dispatch.join.*.*"),
  "dispatch-complete-expansion": durable("PUSH_CMD", "push.cmd.v1.dispatch.expanded.*.*"),
  "registry-expand": durable("PUSH_CMD", "push.cmd.v1.registry.expand.*.*.*"),
  "registry-import": { ...durable("PUSH_IMPORT", "push.import.v1.*.*"), maxAckPending: 1_000 },
  "analytics-open-groups": durable("PUSH_OPENS", "push.opens.v1.*"),
  "analytics-receipt-groups": durable("PUSH_RECEIPTS", "push.receipts.v1.*"),
  "dispatch-direct-ios": durable("PUSH_DELIVER", "push.deliver.v1.direct.ios.>"),
  "dispatch-direct-android": durable("PUSH_DELIVER", "push.deliver.v1.direct.android.>"),
  "dispatch-direct-web": durable("PUSH_DELIVER", "push.deliver.v1.direct.web.>"),
  "dispatch-broadcast-ios": durable("PUSH_DELIVER", "push.deliver.v1.broadcast.ios.>"),
  "dispatch-broadcast-android": durable("PUSH_DELIVER", "push.deliver.v1.broadcast.android.>"),
  "dispatch-broadcast-web": durable("PUSH_DELIVER", "push.deliver.v1.broadcast.web.>"),
  "dispatch-due": durable("PUSH_SCHEDULE", "push.due.v1.>"),
  "dispatch-dead-letters": { ...durable("PUSH_DLQ", "push.dlq.v1.>"), maxAckPending: 1_000 },
  "dispatch-delete-project": durable("PUSH_EVENTS", "push.evt.v1.*.project.deleted"),
  "analytics-delete-project": durable("PUSH_EVENTS", "push.evt.v1.*.project.deleted"),
  "dispatch-erase-user": durable("PUSH_EVENTS", "push.evt.v1.*.user.erased"),
  "analytics-erase-user": durable("PUSH_EVENTS", "push.evt.v1.*.user.erased"),
  /** All events: statistics count some, webhooks can receive any. */
  "analytics-events": durable("PUSH_EVENTS", "push.evt.v1.>"),
  /** For external consumers of open events, with a credential that can do nothing else. 30 s, because not every client signals. */
  "consumers-opens": { ...durable("PUSH_EVENTS", "push.evt.v1.*.notification.opened"), ackWaitMs: 30_000 },
  "registry-record-audit": durable(
    "PUSH_EVENTS",
    "push.evt.v1.installation.audit.recorded",
    "push.evt.v1.*.provider.resumed",
  ),
  "registry-retire-device": durable("PUSH_EVENTS", "push.evt.v1.*.delivery.failed"),
  "registry-record-opens": durable("PUSH_EVENTS", "push.evt.v1.*.notification.opened"),
} as const satisfies Record<string, DurableDefinition>;

export type DurableName = keyof typeof durables;

/** After this many deliveries a message is dead-lettered; only crashes and unclassified errors count. */
export const deliveryGuard = 100;
