import type { messages } from "./catalogue.ts";
import type { BucketName, DurableName, StreamName } from "./streams.ts";

/**
 * Which service does what on the bus. Its user may do that and nothing else, so whatever is added to the contracts does not
 * compile, or is refused in every test, until it stands here.
 */
export const busServices = ["gateway", "registry", "dispatch", "analytics"] as const;
export type BusService = (typeof busServices)[number];

type MessageName = keyof typeof messages;

/** Who publishes each message. */
export const publishers = {
  /** Dispatch hands on what is too large for a group. */
  SendV1: ["gateway", "dispatch"],
  SendGroupV1: ["gateway"],
  SendOneV1: ["gateway"],
  DrainBacklogV1: ["dispatch"],
  OpenGroupV1: ["gateway"],
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
} as const satisfies Record<MessageName, readonly BusService[]>;

/** Who asks each service all of its questions. */
export const askers = {
  gateway: [],
  registry: ["gateway"],
  dispatch: ["gateway"],
  analytics: ["gateway"],
} as const satisfies Record<BusService, readonly BusService[]>;

/** Services that ask another some of its questions: a dispatch that is taken over must not be able to make project tokens. */
export const asks = {
  dispatch: [
    { service: "registry", subject: "push.req.v1.registry.audience.check" },
    { service: "registry", subject: "push.req.v1.registry.audience.resolve" },
  ],
  analytics: [{ service: "dispatch", subject: "push.req.v1.dispatch.deliveries.users" }],
} as const satisfies Partial<Record<BusService, readonly { service: BusService; subject: string }[]>>;

/** Who reads the last message of a contract from its stream. */
export const lookups = {
  SendV1: ["dispatch"],
  SendGroupV1: ["dispatch"],
  SendOneV1: ["dispatch"],
} as const satisfies Partial<Record<MessageName, readonly BusService[]>>;

/** Who asks a stream whether it still holds a message: the one whose work the messages there are. */
export const inspectors = {
  PUSH_CMD: ["dispatch"],
  PUSH_SEND: ["dispatch"],
  PUSH_DRAIN: ["dispatch"],
  PUSH_DELIVER: ["dispatch"],
  PUSH_SCHEDULE: ["dispatch"],
} as const satisfies Partial<Record<StreamName, readonly BusService[]>>;

/** Who reads a stream itself, beside its consumers, and hears what is published to it. */
export const readers = { PUSH_EVENTS: ["gateway"] } as const satisfies Partial<
  Record<StreamName, readonly BusService[]>
>;

/** Who counts what waits in a stream. */
export const counters = { PUSH_CMD: ["gateway"] } as const satisfies Partial<Record<StreamName, readonly BusService[]>>;

/** Who measures how full each stream is, beside the durables that are its own: the one whose work waits there. */
export const measurers = {
  PUSH_CMD: "dispatch",
  PUSH_SEND: "dispatch",
  PUSH_DRAIN: "dispatch",
  PUSH_OPENS: "analytics",
  PUSH_DELIVER: "dispatch",
  PUSH_SCHEDULE: "dispatch",
  PUSH_EVENTS: "analytics",
  PUSH_DLQ: "dispatch",
  PUSH_ADVISORY: "dispatch",
} as const satisfies Record<StreamName, BusService>;

export const streamsMeasuredBy = (service: BusService): StreamName[] =>
  (Object.keys(measurers) as StreamName[]).filter((stream) => measurers[stream] === service);

/** Who keeps room in a stream that all projects share: looks at its messages and at its durables, and removes the oldest. */
export const roomKeepers = { PUSH_EVENTS: "analytics" } as const satisfies Partial<Record<StreamName, BusService>>;

/** Who leaves schedules with the broker's clock. */
export const schedulers: readonly BusService[] = ["dispatch"];

/** Who lists dead letters and publishes them again, on the subject that each came from. */
export const deadLetterReplayers: readonly BusService[] = ["gateway"];

type BucketAccess = {
  /** Get single keys. */
  readonly reads?: readonly BusService[];
  /** Follow all of it. */
  readonly watches?: readonly BusService[];
  /** Ask how full it is. */
  readonly measures?: readonly BusService[];
  /** Put and delete the keys that match. */
  readonly writes: Readonly<Partial<Record<BusService, string>>>;
};

export const bucketAccess: Readonly<Record<BucketName, BucketAccess>> = {
  push_tokens: { reads: ["gateway", "registry"], watches: ["gateway", "registry"], writes: { registry: "*" } },
  push_projects: {
    reads: ["gateway", "registry", "dispatch"],
    watches: ["gateway", "registry"],
    writes: { registry: "*.settings", dispatch: "*.providers" },
  },
  push_idempotency: { reads: ["gateway"], measures: ["gateway"], writes: { gateway: "*" } },
  push_replays: { reads: ["gateway"], writes: { gateway: "*" } },
};

/** What consumers outside of Herald read. */
export const consumedStream = "PUSH_EVENTS" satisfies StreamName;
/** Their durables begin with it, and no service's does. */
export const consumerPrefix = "consumers-";

/** Whose a durable is: its name begins with the service's. Undefined for one of a consumer outside of Herald. */
export const ownerOf = (durable: DurableName): BusService | undefined =>
  busServices.find((service) => durable.startsWith(`${service}-`));
