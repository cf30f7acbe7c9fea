/**
 * Streams, buckets and durables as data. The bootstrap step creates them with its own credential; services create none.
 * Durations are milliseconds, sizes bytes.
 */

const day = 86_400_000;
const mebibyte = 1_048_576;

type StreamDefinition = {
  readonly subjects: readonly string[];
  readonly retention: "workqueue" | "limits";
  /** What a full stream does: a work queue refuses messages, a log removes its oldest. */
  readonly discard: "new" | "old";
  readonly maxBytes: number;
  readonly maxAgeMs?: number;
  readonly maxMessagesPerSubject?: number;
  /** Refuse a message when only its own subject is full. */
  readonly discardNewPerSubject?: boolean;
  readonly allowDirect?: boolean;
  readonly allowAtomicPublish?: boolean;
  readonly allowSchedules?: boolean;
  readonly allowMessageTtl?: boolean;
  /** How long message ids are deduplicated. Only an optimisation: ids in the database make writes exact. */
  readonly duplicateWindowMs: number;
};

export const streams = {
  /** Commands. Direct gets read notifications that are accepted but not stored in the database yet. */
  PUSH_CMD: {
    subjects: ["push.cmd.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 4096 * mebibyte,
    allowDirect: true,
    allowAtomicPublish: true,
    duplicateWindowMs: 120_000,
  },
  /** Groups of small sends, and repeated small sends. Direct gets read notifications that are accepted but not stored in the database yet. */
  PUSH_SEND: {
    subjects: ["push.send.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 2048 * mebibyte,
    allowDirect: true,
    duplicateWindowMs: 120_000,
  },
  /** One message per project whose small sends wait in the ledger. The process that holds it sends them, oldest first. */
  PUSH_DRAIN: {
    subjects: ["push.drain.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 64 * mebibyte,
    maxMessagesPerSubject: 1,
    discardNewPerSubject: true,
    duplicateWindowMs: 120_000,
  },
  /** Opens, apart from sends, so that neither a flood of opens nor unavailable analytics blocks sends. Room for about seven million. */
  PUSH_OPENS: {
    subjects: ["push.opens.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 1024 * mebibyte,
    duplicateWindowMs: 120_000,
  },
  /** Lines of imported files. An import has room for sixteen chunks, so a slow registry slows down each sender, and no project fills the stream. */
  PUSH_IMPORT: {
    subjects: ["push.import.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 1024 * mebibyte,
    maxMessagesPerSubject: 16,
    discardNewPerSubject: true,
    allowDirect: true,
    duplicateWindowMs: 120_000,
  },
  /** Delivery batches. Eight waiting batches of one lane, platform and project are enough to keep it busy and few enough to be fair. */
  PUSH_DELIVER: {
    subjects: ["push.deliver.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 4096 * mebibyte,
    maxMessagesPerSubject: 8,
    discardNewPerSubject: true,
    duplicateWindowMs: 120_000,
  },
  /** Scheduled messages and the messages that they publish when due. The server does not allow discard new with schedules. */
  PUSH_SCHEDULE: {
    subjects: ["push.sched.v1.>", "push.due.v1.>"],
    retention: "limits",
    discard: "old",
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 35 * day,
    allowSchedules: true,
    allowMessageTtl: true,
    duplicateWindowMs: 120_000,
  },
  /** Events, for all consumers that may read them, and replayable. */
  PUSH_EVENTS: {
    subjects: ["push.evt.v1.>"],
    retention: "limits",
    discard: "old",
    maxBytes: 8192 * mebibyte,
    maxAgeMs: 30 * day,
    allowDirect: true,
    allowAtomicPublish: true,
    duplicateWindowMs: 120_000,
  },
  /** Dead letters: messages that could not be processed, with their reasons. */
  PUSH_DLQ: {
    subjects: ["push.dlq.v1.>"],
    retention: "limits",
    discard: "old",
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 30 * day,
    allowDirect: true,
    duplicateWindowMs: 120_000,
  },
  /** Stores advisories, which are core messages and otherwise lost. Wildcards match whole tokens, so it stores those of every stream. */
  PUSH_ADVISORY: {
    subjects: ["$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.*", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.*.*"],
    retention: "limits",
    discard: "old",
    maxBytes: 64 * mebibyte,
    maxAgeMs: 30 * day,
    duplicateWindowMs: 120_000,
  },
} as const satisfies Record<string, StreamDefinition>;

export type StreamName = keyof typeof streams;

type BucketDefinition = {
  readonly history: number;
  readonly maxBytes: number;
  /** What a full bucket does: refuse entries (absent) or remove its oldest. */
  readonly discard?: "old";
  /** The time to live of entries; absent: unlimited. */
  readonly ttlMs?: number;
  /** A TTL for a single key needs the bucket's limit markers (their lifetime in ms). */
  readonly markerTtlMs?: number;
  /** Allows atomic batches of entries. */
  readonly allowAtomicPublish?: boolean;
};

export const buckets = {
  /** Key: hash of a project token, value: TokenRecord. The gateway watches it to authenticate. */
  push_tokens: { history: 1, maxBytes: 256 * mebibyte },
  /** Key: SHA-256 of an operator's token, value: OperatorRecord. The gateway watches it. Room for some ten thousand operators. */
  push_operators: { history: 1, maxBytes: 16 * mebibyte },
  /** Keys `session.<hash>` and `code.<hash>`, value: SessionRecord. Entries expire by themselves. */
  push_sessions: { history: 1, maxBytes: 16 * mebibyte, markerTtlMs: 60_000 },
  /** Keys `<project>.settings` and `<project>.providers`: what the gateway needs while the database is unavailable. */
  push_projects: { history: 1, maxBytes: 256 * mebibyte },
  /**
   * Key: hash of project, route and Idempotency-Key, value: IdempotencyRecord. Kept a little over 24 h. Beyond 5.7 million the
   * oldest are removed, because refusing requests is worse than repeating one after many hours.
   */
  push_idempotency: {
    history: 1,
    maxBytes: 1024 * mebibyte,
    discard: "old",
    ttlMs: day + 3_600_000,
    markerTtlMs: 60_000,
    allowAtomicPublish: true,
  },
  /** Key: a dead letter's sequence, value: ReplayRecord. Outlives the dead letter by a day. */
  push_replays: { history: 1, maxBytes: 64 * mebibyte, ttlMs: 31 * day },
  /**
   * Key: `<service>.<instance>`, value: StatusReport. A process that ended without a stop is shown for ten minutes: long enough for the
   * person whom an alert called, and short enough that a replica which was replaced does not look like trouble.
   */
  push_status: { history: 1, maxBytes: 16 * mebibyte, discard: "old", ttlMs: 600_000 },
} as const satisfies Record<string, BucketDefinition>;

export type BucketName = keyof typeof buckets;

/**
 * After this time an unsettled message without a `working()` signal is redelivered to another process. It is 6 s, so that messages of a
 * killed process are redelivered within 10 s, restart included. A live process signals after a third of it, however slow its providers
 * are, and may stall for half of it.
 */
const ackWaitMs = 6_000;

type DurableDefinition = {
  readonly stream: StreamName;
  readonly filters: readonly string[];
  /** Redelivered when neither settled nor signalled with `working()` for this long. */
  readonly ackWaitMs: number;
  /** Large, because held messages count: with a small one, one project's full queue would block all others. */
  readonly maxAckPending: number;
  /** The start position of a new durable. */
  readonly from: "all" | "new";
};

const command = (filter: string) =>
  ({ stream: "PUSH_CMD", filters: [filter], ackWaitMs, maxAckPending: 20_000, from: "all" }) as const;

const smallSends = (filter: string) =>
  ({ stream: "PUSH_SEND", filters: [filter], ackWaitMs, maxAckPending: 20_000, from: "all" }) as const;

const delivery = (lane: "direct" | "broadcast", platform: "ios" | "android" | "web") =>
  ({
    stream: "PUSH_DELIVER",
    filters: [`push.deliver.v1.${lane}.${platform}.>`],
    ackWaitMs,
    maxAckPending: 20_000,
    from: "all",
  }) as const;

const event = (...filters: string[]) =>
  ({ stream: "PUSH_EVENTS", filters, ackWaitMs, maxAckPending: 20_000, from: "all" }) as const;

/** Every durable consumer. The name is state: a renamed durable replays its stream, so a rename is a migration. */
export const durables = {
  "dispatch-start": command("push.cmd.v1.dispatch.send.*.*"),
  "dispatch-send-groups": smallSends("push.send.v1.group.*"),
  "dispatch-single-sends": smallSends("push.send.v1.one.*"),
  "dispatch-drain": {
    stream: "PUSH_DRAIN",
    filters: ["push.drain.v1.*"],
    ackWaitMs,
    maxAckPending: 20_000,
    from: "all",
  },
  "dispatch-complete-expansion": command("push.cmd.v1.dispatch.expanded.*.*"),
  "registry-expand": command("push.cmd.v1.registry.expand.*.*.*"),
  "registry-import": {
    stream: "PUSH_IMPORT",
    filters: ["push.import.v1.*.*"],
    ackWaitMs,
    maxAckPending: 1_000,
    from: "all",
  },
  "analytics-open-groups": {
    stream: "PUSH_OPENS",
    filters: ["push.opens.v1.*"],
    ackWaitMs,
    maxAckPending: 20_000,
    from: "all",
  },
  "dispatch-direct-ios": delivery("direct", "ios"),
  "dispatch-direct-android": delivery("direct", "android"),
  "dispatch-direct-web": delivery("direct", "web"),
  "dispatch-broadcast-ios": delivery("broadcast", "ios"),
  "dispatch-broadcast-android": delivery("broadcast", "android"),
  "dispatch-broadcast-web": delivery("broadcast", "web"),
  "dispatch-due": {
    stream: "PUSH_SCHEDULE",
    filters: ["push.due.v1.>"],
    ackWaitMs,
    maxAckPending: 20_000,
    from: "all",
  },
  "dispatch-dead-letters": {
    stream: "PUSH_DLQ",
    filters: ["push.dlq.v1.>"],
    ackWaitMs,
    maxAckPending: 1_000,
    from: "all",
  },
  "dispatch-delete-project": event("push.evt.v1.*.project.deleted"),
  "analytics-delete-project": event("push.evt.v1.*.project.deleted"),
  "dispatch-erase-user": event("push.evt.v1.*.user.erased"),
  "analytics-erase-user": event("push.evt.v1.*.user.erased"),
  /** All events: statistics count some, webhooks can receive any. */
  "analytics-events": event("push.evt.v1.>"),
  /** For external consumers of open events, with a credential that can do nothing else. 30 s, because not every client signals. */
  "consumers-opens": { ...event("push.evt.v1.*.notification.opened"), ackWaitMs: 30_000 },
  "registry-record-audit": event("push.evt.v1.installation.audit.recorded"),
  "registry-retire-device": event("push.evt.v1.*.delivery.failed"),
  "registry-record-opens": event("push.evt.v1.*.notification.opened"),
} as const satisfies Record<string, DurableDefinition>;

export type DurableName = keyof typeof durables;

/** A message delivered this often is dead-lettered; only crashes and unclassified errors count. */
export const deliveryGuard = 100;
