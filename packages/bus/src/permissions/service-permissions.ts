import type { BucketName, DurableName, messages, StreamName } from "@herald/contracts";

/**
 * What each service may do on the bus; its user has exactly these permissions. A new contract does not compile, or is refused in tests,
 * until it is listed here.
 */
export const busServices = ["gateway", "registry", "dispatch", "analytics"] as const;
export type BusService = (typeof busServices)[number];

type MessageName = keyof typeof messages;

/** The publishers of each message. */
export const publishers = {
  /** Dispatch publishes sends that turn out too large for a group. */
  SendV1: ["gateway", "dispatch"],
  SendGroupV1: ["gateway"],
  SendOneV1: ["gateway"],
  DrainBacklogV1: ["dispatch"],
  OpenGroupV1: ["gateway"],
  ImportChunkV1: ["gateway"],
  ExpandV1: ["dispatch", "registry"],
  ExpandedV1: ["registry"],
  DeliverBatchV1: ["registry"],
  DueV1: ["dispatch"],
  DeviceRegisteredV1: ["registry"],
  DeviceUpdatedV1: ["registry"],
  DeviceDeactivatedV1: ["registry"],
  DeviceDeletedV1: ["registry"],
  DeviceSubscribedV1: ["registry"],
  DeviceUnsubscribedV1: ["registry"],
  TopicCreatedV1: ["registry"],
  TopicDeletedV1: ["registry"],
  ProjectDeletedV1: ["registry"],
  NotificationAcceptedV1: ["dispatch"],
  NotificationCompletedV1: ["dispatch"],
  NotificationCancelledV1: ["dispatch"],
  NotificationExpiredV1: ["dispatch"],
  NotificationOpenedV1: ["analytics"],
  DeliveryAcceptedV1: ["dispatch"],
  DeliveryFailedV1: ["dispatch"],
  ProviderPausedV1: ["dispatch"],
  ProviderResumedV1: ["dispatch"],
  WebhookDisabledV1: ["analytics"],
  UserErasedV1: ["registry"],
  AuditRecordedV1: ["gateway"],
} as const satisfies Record<MessageName, readonly BusService[]>;

/** The services that may send every request of a service. */
export const askers = {
  gateway: [],
  registry: ["gateway"],
  dispatch: ["gateway"],
  analytics: ["gateway"],
} as const satisfies Record<BusService, readonly BusService[]>;

/** The services that may send single requests: a compromised dispatch must not be able to create project tokens. */
export const asks = {
  dispatch: [
    { service: "registry", subject: "push.req.v1.registry.audience.check" },
    { service: "registry", subject: "push.req.v1.registry.audience.resolve" },
  ],
  analytics: [{ service: "dispatch", subject: "push.req.v1.dispatch.deliveries.users" }],
} as const satisfies Partial<Record<BusService, readonly { service: BusService; subject: string }[]>>;

/** The services that read the last message of a contract from its stream. */
export const lookups = {
  SendV1: ["dispatch"],
  SendGroupV1: ["dispatch"],
  SendOneV1: ["dispatch"],
  ImportChunkV1: ["registry"],
} as const satisfies Partial<Record<MessageName, readonly BusService[]>>;

/** The services that check whether a stream still has a message: those that process its messages. */
export const inspectors = {
  PUSH_CMD: ["dispatch"],
  PUSH_SEND: ["dispatch"],
  PUSH_DRAIN: ["dispatch"],
  PUSH_DELIVER: ["dispatch"],
  PUSH_SCHEDULE: ["dispatch"],
} as const satisfies Partial<Record<StreamName, readonly BusService[]>>;

/** The services that read a stream without a consumer, and subscribe to its subjects. */
export const readers = { PUSH_EVENTS: ["gateway"] } as const satisfies Partial<
  Record<StreamName, readonly BusService[]>
>;

/** The services that count waiting messages of a stream. */
export const counters = { PUSH_CMD: ["gateway"] } as const satisfies Partial<Record<StreamName, readonly BusService[]>>;

/** The services that measure how full each stream is: those that process its messages. */
export const measurers = {
  PUSH_CMD: "dispatch",
  PUSH_SEND: "dispatch",
  PUSH_DRAIN: "dispatch",
  PUSH_OPENS: "analytics",
  PUSH_IMPORT: "registry",
  PUSH_DELIVER: "dispatch",
  PUSH_SCHEDULE: "dispatch",
  PUSH_EVENTS: "analytics",
  PUSH_DLQ: "dispatch",
  PUSH_ADVISORY: "dispatch",
} as const satisfies Record<StreamName, BusService>;

export const streamsMeasuredBy = (service: BusService): StreamName[] =>
  (Object.keys(measurers) as StreamName[]).filter((stream) => measurers[stream] === service);

/** The services that make room in a stream that all projects share: they read its messages and durables, and remove the oldest. */
export const roomKeepers = { PUSH_EVENTS: "analytics" } as const satisfies Partial<Record<StreamName, BusService>>;

/** The services that publish scheduled messages. */
export const schedulers: readonly BusService[] = ["dispatch"];

/** The services that list dead letters and replay them on their original subjects. */
export const deadLetterReplayers: readonly BusService[] = ["gateway"];

type BucketAccess = {
  /** Reads single keys. */
  readonly reads?: readonly BusService[];
  /** Watches all keys. */
  readonly watches?: readonly BusService[];
  /** Reads how full it is. */
  readonly measures?: readonly BusService[];
  /** Puts and deletes matching keys. */
  readonly writes: Readonly<Partial<Record<BusService, string>>>;
};

export const bucketAccess: Readonly<Record<BucketName, BucketAccess>> = {
  push_tokens: { reads: ["gateway", "registry"], watches: ["gateway", "registry"], writes: { registry: "*" } },
  push_operators: { reads: ["gateway", "registry"], watches: ["gateway", "registry"], writes: { registry: "*" } },
  push_sessions: { reads: ["gateway"], watches: ["gateway"], writes: { gateway: "*.*" } },
  push_projects: {
    reads: ["gateway", "registry", "dispatch"],
    watches: ["gateway", "registry"],
    writes: { registry: "*.settings", dispatch: "*.providers" },
  },
  push_idempotency: { reads: ["gateway"], measures: ["gateway"], writes: { gateway: "*" } },
  push_replays: { reads: ["gateway"], writes: { gateway: "*" } },
  push_status: {
    watches: ["gateway"],
    writes: { gateway: "gateway.*", registry: "registry.*", dispatch: "dispatch.*", analytics: "analytics.*" },
  },
};

/** The stream that external consumers read. */
export const consumedStream = "PUSH_EVENTS" satisfies StreamName;
/** The prefix of their durables; no service has it. */
export const consumerPrefix = "consumers-";

/** The service of a durable, whose name begins with the service's name. Undefined for an external consumer's. */
export const ownerOf = (durable: DurableName): BusService | undefined =>
  busServices.find((service) => durable.startsWith(`${service}-`));
