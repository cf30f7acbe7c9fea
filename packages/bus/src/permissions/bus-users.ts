import { type BucketName, type DurableName, durables, messages, type StreamName, streams } from "@herald/contracts";

export const busServices = ["gateway", "registry", "dispatch", "analytics"] as const;
export type BusService = (typeof busServices)[number];

/** The stream that external consumers read. */
export const consumedStream = "PUSH_EVENTS" satisfies StreamName;
/** The prefix of their durables; no service has it. */
export const consumerPrefix = "consumers-";

const allDurables = Object.entries(durables) as [
  DurableName,
  { readonly stream: StreamName; readonly filters: readonly string[] },
][];

/** The service of a durable, whose name begins with the service's name. Undefined for an external consumer's. */
export const serviceOf = (durable: DurableName): BusService | undefined =>
  busServices.find((service) => durable.startsWith(`${service}-`));

/** Herald's own durables of a stream. */
export const durablesOf = (stream: StreamName): DurableName[] =>
  allDurables.flatMap(([durable, read]) =>
    read.stream === stream && serviceOf(durable) !== undefined ? [durable] : [],
  );

/** Whether some subject matches both filters, each with NATS's wildcards `*` and `>`. */
export const overlaps = (one: string, other: string): boolean => {
  const [a, b] = [one.split("."), other.split(".")];
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [left, right] = [a[index], b[index]];
    if (left === undefined || right === undefined) return false;
    if (left === ">" || right === ">") return true;
    if (left !== right && left !== "*" && right !== "*") return false;
  }
  return true;
};

type MessageName = keyof typeof messages;

/** What a service does on the bus, beside consuming its durables; its user has exactly these permissions. */
type Grants = {
  readonly publishes: readonly MessageName[];
  /** The requests that it sends: a compromised dispatch, for example, must not be able to create project tokens. */
  readonly requests: readonly string[];
  /** Reads the last message of a contract from its stream. */
  readonly looksUp?: readonly MessageName[];
  /** Checks whether a stream that it processes still has a message. */
  readonly inspects?: readonly StreamName[];
  /** Reads a stream without a consumer, and subscribes to its subjects. */
  readonly reads?: readonly StreamName[];
  /** Reads how full streams and buckets are. */
  readonly measures: readonly (StreamName | `KV_${BucketName}`)[];
  /** Reads single keys of buckets. */
  readonly readsKeys?: readonly BucketName[];
  /** Watches all keys of buckets. */
  readonly watches?: readonly BucketName[];
  /** Puts and deletes matching keys. */
  readonly writes?: Readonly<Partial<Record<BucketName, string | readonly string[]>>>;
  /** Further subjects that it publishes on. */
  readonly also?: readonly string[];
};

/** A new contract or bucket fails a test until a service has it here. */
export const grants: Readonly<Record<BusService, Grants>> = {
  gateway: {
    publishes: [
      "SendV1",
      "SendGroupV1",
      "SendOneV1",
      "OpenGroupV1",
      "ReceiptGroupV1",
      "ImportChunkV1",
      "JoinActivityV1",
      "AuditRecordedV1",
    ],
    requests: ["push.req.v1.registry.>", "push.req.v1.dispatch.>", "push.req.v1.analytics.>"],
    reads: ["PUSH_EVENTS"],
    measures: ["PUSH_CMD", "PUSH_IMPORT", "PUSH_DLQ", "KV_push_idempotency", "KV_push_activities"],
    readsKeys: [
      ...(["push_tokens", "push_operators", "push_sessions", "push_projects"] as const),
      ...(["push_providers", "push_content", "push_idempotency", "push_replays", "push_activities"] as const),
    ],
    watches: ["push_tokens", "push_operators", "push_sessions", "push_projects", "push_providers", "push_status"],
    writes: { push_sessions: "*.*", push_idempotency: "*", push_replays: "*", push_activities: ">" },
    // Lists dead letters, and publishes them again on every subject of Herald's durables.
    also: [
      "$JS.API.DIRECT.GET.PUSH_DLQ",
      "$JS.API.DIRECT.GET.KV_push_replays",
      ...Object.values(messages).flatMap(({ filter }) =>
        allDurables.some(
          ([durable, { filters }]) => serviceOf(durable) !== undefined && filters.some((one) => overlaps(one, filter)),
        )
          ? [filter]
          : [],
      ),
    ],
  },
  registry: {
    publishes: [
      "ExpandV1",
      "ExpandedV1",
      "DeliverBatchV1",
      "DeviceRegisteredV1",
      "DeviceUpdatedV1",
      "DeviceDeactivatedV1",
      "DeviceDeletedV1",
      "DeviceSubscribedV1",
      "DeviceUnsubscribedV1",
      "TopicCreatedV1",
      "TopicDeletedV1",
      "TemplatePublishedV1",
      "ProjectPausedV1",
      "ProjectResumedV1",
      "ProjectDeletedV1",
      "UserErasedV1",
    ],
    requests: ["recipients.read", "recipients.record", "users.erase-devices"].map(
      (one) => `push.req.v1.dispatch.${one}`,
    ),
    looksUp: ["ImportChunkV1"],
    measures: ["PUSH_IMPORT"],
    readsKeys: ["push_tokens", "push_operators", "push_projects", "push_providers", "push_content"],
    watches: ["push_tokens", "push_operators", "push_projects", "push_content"],
    writes: { push_tokens: "*", push_operators: "*", push_projects: ["*.settings", "*.rules"], push_content: "*.*" },
  },
  dispatch: {
    publishes: [
      "SendV1", // Sends that are too large for a group.
      "SendOneV1", // States of activities.
      "JoinActivityV1", // Those for their channels.
      "DrainBacklogV1",
      "ExpandV1",
      "DueV1",
      "NotificationAcceptedV1",
      "NotificationChangedV1",
      "NotificationPausedV1",
      "NotificationResumedV1",
      "NotificationProposedV1",
      "NotificationApprovedV1",
      "NotificationRejectedV1",
      "NotificationCompletedV1",
      "NotificationCancelledV1",
      "NotificationExpiredV1",
      "NotificationUnopenedV1",
      "DeliveryAcceptedV1",
      "DeliveryFailedV1",
      "DeliveryDelayedV1",
      "ProviderPausedV1",
      "ProviderResumedV1",
    ],
    requests: [
      ...["check", "resolve", "size", "zones"].map((verb) => `push.req.v1.registry.audience.${verb}`),
      ...["of-devices", "stored"].map((verb) => `push.req.v1.analytics.opens.${verb}`),
    ],
    looksUp: ["SendV1", "SendGroupV1", "SendOneV1"],
    inspects: ["PUSH_CMD", "PUSH_SEND", "PUSH_DRAIN", "PUSH_DELIVER", "PUSH_SCHEDULE"],
    measures: [
      ...(["PUSH_CMD", "PUSH_SEND", "PUSH_DRAIN", "PUSH_DELIVER", "PUSH_SCHEDULE", "PUSH_DLQ"] as const),
      "KV_push_activities",
    ],
    readsKeys: ["push_projects", "push_providers", "push_activities"],
    watches: ["push_projects"],
    writes: { push_providers: "*", push_activities: ">" },
    also: ["push.sched.v1.>"],
  },
  analytics: {
    publishes: ["NotificationOpenedV1", "NotificationReceivedV1", "NotificationDismissedV1", "WebhookDisabledV1"],
    requests: ["push.req.v1.dispatch.deliveries.users"],
    inspects: ["PUSH_OPENS"],
    measures: ["PUSH_OPENS", "PUSH_RECEIPTS", "PUSH_EVENTS"],
    // Makes room in the stream that all projects share: reads its messages and durables, and removes the oldest.
    also: [
      `$JS.API.STREAM.PURGE.${consumedStream}`,
      `$JS.API.DIRECT.GET.${consumedStream}`,
      ...durablesOf(consumedStream).map((durable) => `$JS.API.CONSUMER.INFO.${consumedStream}.${durable}`),
    ],
  },
};

/** The streams that a service measures. */
export const streamsMeasuredBy = (service: BusService): StreamName[] =>
  grants[service].measures.filter((name) => name in streams) as StreamName[];

/** The permissions of a NATS user, in the terms of nats-server's configuration. */
type BusPermissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/** A user, its inbox, and its permissions; absent: all. */
export type BusUser = { readonly user: string; readonly inboxPrefix: string; readonly permissions?: BusPermissions };

/** Consumes and settles one durable's messages. Two forms of the ack subject, because nats-server 2.15 makes the longer one the default. */
const consuming = (stream: StreamName, durable: string): string[] => [
  `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
  `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
  `$JS.ACK.${stream}.${durable}.>`,
  `$JS.ACK.*.*.${stream}.${durable}.>`,
];

/** A watch is a consumer that the watcher creates and deletes. */
const watching = (bucket: BucketName): string[] => [
  `$JS.API.STREAM.INFO.KV_${bucket}`,
  `$JS.API.CONSUMER.CREATE.KV_${bucket}.>`,
  `$JS.API.CONSUMER.INFO.KV_${bucket}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.KV_${bucket}.*`,
  `$JS.API.CONSUMER.DELETE.KV_${bucket}.*`,
];

/** The stream of the durable that takes a message. */
const streamOf = (name: MessageName): StreamName => {
  const taken = allDurables.find(([, { filters }]) => filters.some((one) => overlaps(one, messages[name].filter)));
  if (taken === undefined) throw new Error(`${name}: no durable takes it`);
  return taken[1].stream;
};

/** The server accepts replies to requests from another account on these subjects, and nothing unsolicited. */
export const answersTo = "_R_.>";

/** The requests that a service answers. */
export const askedOf = (service: BusService): string[] => (service === "gateway" ? [] : [`push.req.v1.${service}.>`]);

/** The subjects of the streams that a service reads. */
export const readsOf = (service: BusService): string[] =>
  (grants[service].reads ?? []).flatMap((stream) => streams[stream].subjects);

/** The parts of a long reply, and the later replies of a group, are requested one by one from the service that makes them. */
const restOf = (requests: readonly string[]): string[] => {
  const single = requests.filter((subject) => !subject.endsWith(".>"));
  return [...new Set(single.map((subject) => `${subject.split(".").slice(0, 4).join(".")}.rest.*`))];
};

const publishOf = (service: BusService): string[] => {
  const { publishes, requests, looksUp = [], inspects = [], reads = [], measures, ...more } = grants[service];
  const { readsKeys = [], watches = [], writes = {}, also = [] } = more;
  return [
    ...requests,
    ...restOf(requests),
    ...(askedOf(service).length > 0 ? [answersTo] : []),
    ...publishes.map((name) => messages[name].filter),
    ...also,
    ...allDurables.flatMap(([durable, { stream }]) =>
      serviceOf(durable) === service
        ? [...consuming(stream, durable), ...(stream === "PUSH_DLQ" ? [] : [`push.dlq.v1.${durable}`])]
        : [],
    ),
    // Any replica answers DIRECT.GET, for these subjects only. The leader answers MSG.GET, whose subject names only the stream.
    ...looksUp.flatMap((name) => {
      const stream = streamOf(name);
      return [`$JS.API.DIRECT.GET.${stream}.${messages[name].filter}`, `$JS.API.STREAM.MSG.GET.${stream}`];
    }),
    // Only from the stream's leader: a replica may still have settled messages.
    ...inspects.map((stream) => `$JS.API.STREAM.MSG.GET.${stream}`),
    ...[...measures, ...reads].map((stream) => `$JS.API.STREAM.INFO.${stream}`),
    // With direct gets: permissions cannot match part of a consumer's name, so a service with consumers of its own could delete others'.
    ...reads.map((stream) => `$JS.API.DIRECT.GET.${stream}`),
    ...readsKeys.map((bucket) => `$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.>`),
    ...watches.flatMap(watching),
    `$JS.API.DIRECT.GET.KV_push_status.$KV.push_status.${service}.suspect.>`,
    ...Object.entries({ ...writes, push_status: `${service}.>` }).flatMap(([bucket, keys]) =>
      [keys].flat().map((key) => `$KV.${bucket}.${key}`),
    ),
  ];
};

/** A user with the permissions, and with an inbox named after the user, who alone may subscribe to it. */
const restricted = (user: string, publish: readonly string[], subscribe: readonly string[] = []): BusUser => {
  const inboxPrefix = `_INBOX_${user}`;
  return {
    user,
    inboxPrefix,
    permissions: { publish: [...new Set(publish)], subscribe: [`${inboxPrefix}.>`, ...subscribe] },
  };
};

const serviceUser = (service: BusService): BusUser =>
  restricted(`herald-${service}`, publishOf(service), [...askedOf(service), ...readsOf(service)]);

/** The user of an external consumer. It may only pull and settle the messages of one durable of the events, and receive the replies. */
export const consumerUser = (user: string, durable: string): BusUser =>
  restricted(user, consuming(consumedStream, durable));

/** Creates and updates streams and durables, and deletes only durables of events. Publishes no message and reads no bucket. */
const bootstrapUser = restricted("herald-bootstrap", [
  "$JS.API.STREAM.INFO.*",
  "$JS.API.STREAM.CREATE.*",
  "$JS.API.STREAM.UPDATE.*",
  "$JS.API.CONSUMER.LIST.*",
  "$JS.API.CONSUMER.INFO.*.*",
  ...allDurables.flatMap(([, { stream }]) => [
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.*`,
  ]),
  `$JS.API.CONSUMER.DELETE.${consumedStream}.*`,
]);

/**
 * The initial users of Herald's broker: one for each service and for the bootstrap step, `opens` for the first consumer of open events,
 * and `admin` for people; no part of Herald runs as `admin`.
 */
export const busUsers = {
  gateway: serviceUser("gateway"),
  registry: serviceUser("registry"),
  dispatch: serviceUser("dispatch"),
  analytics: serviceUser("analytics"),
  bootstrap: bootstrapUser,
  opens: consumerUser("analytics", "consumers-opens" satisfies DurableName),
  admin: { user: "herald", inboxPrefix: "_INBOX" },
} as const satisfies Record<string, BusUser>;

export type BusUserName = keyof typeof busUsers;
