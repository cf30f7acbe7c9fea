/**
 * Streams, buckets and durables as data. One bootstrap step creates them with an admin credential; services create none.
 * Durations are milliseconds, sizes bytes.
 */

const day = 86_400_000;
const mebibyte = 1_048_576;

type StreamDefinition = {
  readonly subjects: readonly string[];
  readonly retention: "workqueue" | "limits";
  /** What happens when the stream is full: a work queue refuses, a log forgets its oldest. */
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
  /** How long an id is remembered. A convenience: exactness rests on ids in the database. */
  readonly duplicateWindowMs: number;
};

export const streams = {
  /** Commands. Direct gets answer for a notification that is accepted but not yet in the database. */
  PUSH_CMD: {
    subjects: ["push.cmd.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 4096 * mebibyte,
    allowDirect: true,
    allowAtomicPublish: true,
    duplicateWindowMs: 120_000,
  },
  /** Groups of sends to few devices each, and such sends that are repeated. Direct gets answer for a notification that is accepted but not yet in the database. */
  PUSH_SEND: {
    subjects: ["push.send.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 2048 * mebibyte,
    allowDirect: true,
    duplicateWindowMs: 120_000,
  },
  /** One message for each project whose small sends wait in the ledger: whoever holds it sends them, oldest first. */
  PUSH_DRAIN: {
    subjects: ["push.drain.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 64 * mebibyte,
    maxMessagesPerSubject: 1,
    discardNewPerSubject: true,
    duplicateWindowMs: 120_000,
  },
  /** Opens: a flood of them, or analytics being unavailable, takes no room that sends need. Full, it holds some seven million. */
  PUSH_OPENS: {
    subjects: ["push.opens.v1.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 1024 * mebibyte,
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
  /** The clock: scheduled messages and what they turn into when they are due. Discard new is refused with schedules. */
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
  /** What happened, for everyone who may read it, and replayable. */
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
  /** What could not be processed, with its reason. */
  PUSH_DLQ: {
    subjects: ["push.dlq.v1.>"],
    retention: "limits",
    discard: "old",
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 30 * day,
    allowDirect: true,
    duplicateWindowMs: 120_000,
  },
  /** Advisories are core messages, lost while nobody listens: this stream listens always. A wildcard is a whole token, so it takes every stream's. */
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
  /** What happens when the bucket is full: it refuses (absent), or forgets its oldest. */
  readonly discard?: "old";
  /** Entries vanish after this; absent: they stay. */
  readonly ttlMs?: number;
  /** A TTL for a single key needs the bucket's limit markers (their lifetime in ms). */
  readonly markerTtlMs?: number;
  /** Entries of the same moment are written in one batch. */
  readonly allowAtomicPublish?: boolean;
};

export const buckets = {
  /** Key: hash of a project token, value: TokenRecord. What the gateway authenticates with, by a watch. */
  push_tokens: { history: 1, maxBytes: 256 * mebibyte },
  /** Keys `<project>.settings` and `<project>.providers`: what the gateway must know while the database is unavailable. */
  push_projects: { history: 1, maxBytes: 256 * mebibyte },
  /**
   * Key: hash of project, route and Idempotency-Key, value: IdempotencyRecord. Kept a little over 24 h, 5.7 million of them; past
   * that the oldest go, because a request that is refused is worse than a repeat after many hours.
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
} as const satisfies Record<string, BucketDefinition>;

export type BucketName = keyof typeof buckets;

/**
 * After this a message that nobody settled or signalled goes to another process: what a process held that was killed waits so long,
 * and is to be back within 10 s with its restart. A live one signals `working()` after a third of it, however long its providers
 * take, and may stall for half of it.
 */
const ackWaitMs = 6_000;

type DurableDefinition = {
  readonly stream: StreamName;
  readonly filters: readonly string[];
  /** Redelivered when neither settled nor `working()` for so long. */
  readonly ackWaitMs: number;
  /** Large, because held messages count: a small one would let one project's full queue block every other. */
  readonly maxAckPending: number;
  /** Where a new durable begins. */
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
  /** Everything that happens: statistics count some of it, and webhooks may get any of it. */
  "analytics-events": event("push.evt.v1.>"),
  /** For consumers of open events outside of Herald: read with a credential that can do nothing else. Not everybody's client signals. */
  "consumers-opens": { ...event("push.evt.v1.*.notification.opened"), ackWaitMs: 30_000 },
  "registry-retire-device": event("push.evt.v1.*.delivery.failed"),
} as const satisfies Record<string, DurableDefinition>;

export type DurableName = keyof typeof durables;

/** A message that was given up on this often is dead-lettered: only crashes and unclassified errors count. */
export const deliveryGuard = 100;
