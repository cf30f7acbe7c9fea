import { type BucketName, type DurableName, durables, messages, type StreamName, streams } from "@herald/contracts";
import {
  askers,
  asks,
  type BusService,
  bucketAccess,
  busServices,
  consumedStream,
  counters,
  deadLetterReplayers,
  inspectors,
  lookups,
  ownerOf,
  publishers,
  readers,
  roomKeepers,
  schedulers,
  streamsMeasuredBy,
} from "./service-permissions.ts";
import { overlaps } from "./subject-filter.ts";

/** The permissions of a NATS user, in the terms of nats-server's configuration. */
export type BusPermissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/** A user, its inbox, and its permissions; absent: all. */
export type BusUser = { readonly user: string; readonly inboxPrefix: string; readonly permissions?: BusPermissions };

type MessageName = keyof typeof messages;

/** Replies come to an inbox that only its user may subscribe to; it is named after the user. */
export const inboxPrefixOf = (user: string): string => `_INBOX_${user}`;

/** The user of a service. */
export const serviceUser = (service: BusService | "bootstrap"): string => `herald-${service}`;

/** Consumes and settles one durable's messages. Two forms of the ack subject, because nats-server 2.15 makes the longer one the default. */
const consuming = (stream: StreamName, durable: string): string[] => [
  `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
  `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
  `$JS.ACK.${stream}.${durable}.>`,
  `$JS.ACK.*.*.${stream}.${durable}.>`,
];

/** Consumes one durable of the events and nothing else: reads its info, pulls and settles its messages, and receives the replies. */
export const consumerPermissions = (durable: string, inboxPrefix: string): BusPermissions => ({
  publish: consuming(consumedStream, durable),
  subscribe: [`${inboxPrefix}.>`],
});

const entries = <Key extends string, Value>(table: Readonly<Partial<Record<Key, Value>>>) =>
  Object.entries(table) as [Key, Value][];

const publishing = (service: BusService): string[] => [
  ...entries<MessageName, readonly BusService[]>(publishers).flatMap(([name, services]) =>
    services.includes(service) ? [messages[name].filter] : [],
  ),
  ...(schedulers.includes(service) ? ["push.sched.v1.>"] : []),
];

const ofDurables = (service: BusService): string[] =>
  entries<DurableName, { stream: StreamName }>(durables).flatMap(([durable, { stream }]) => {
    if (ownerOf(durable) !== service) return [];
    return [...consuming(stream, durable), ...(stream === "PUSH_DLQ" ? [] : [`push.dlq.v1.${durable}`])];
  });

const reading = (service: BusService): string[] =>
  entries<MessageName, readonly BusService[]>(lookups).flatMap(([name, services]) => {
    if (!services.includes(service)) return [];
    // Any replica answers the first, for these subjects only. The leader answers the second, whose subject only names the stream.
    const stream = streamOf(name);
    return [`$JS.API.DIRECT.GET.${stream}.${messages[name].filter}`, `$JS.API.STREAM.MSG.GET.${stream}`];
  });

/** Reads only from the stream's leader: a replica may still have settled messages. */
const inspecting = (service: BusService): string[] =>
  entries<StreamName, readonly BusService[]>(inspectors).flatMap(([stream, services]) =>
    services.includes(service) ? [`$JS.API.STREAM.MSG.GET.${stream}`] : [],
  );

const streamOf = (name: MessageName): StreamName => {
  const { filter } = messages[name];
  const found = entries<DurableName, { stream: StreamName; filters: readonly string[] }>(durables).find(
    ([, { filters }]) => filters.some((one) => overlaps(one, filter)),
  );
  if (found === undefined) throw new Error(`${name}: no durable takes it`);
  return found[1].stream;
};

const ofBuckets = (service: BusService): string[] =>
  entries(bucketAccess).flatMap(([bucket, { reads = [], watches = [], measures = [], writes }]) => [
    ...(reads.includes(service) ? [`$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.>`] : []),
    ...(watches.includes(service) ? watching(bucket) : []),
    ...(measures.includes(service) ? [`$JS.API.STREAM.INFO.KV_${bucket}`] : []),
    ...(writes[service] === undefined ? [] : [`$KV.${bucket}.${writes[service]}`]),
  ]);

/** A watch is a consumer that the watcher creates and deletes. */
const watching = (bucket: BucketName): string[] => [
  `$JS.API.STREAM.INFO.KV_${bucket}`,
  `$JS.API.CONSUMER.CREATE.KV_${bucket}.>`,
  `$JS.API.CONSUMER.INFO.KV_${bucket}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.KV_${bucket}.*`,
  `$JS.API.CONSUMER.DELETE.KV_${bucket}.*`,
];

/** By direct gets: a permission to create consumers would also allow to delete those of others, because it cannot match part of a name. */
const ofStreams = (service: BusService) => {
  const read = entries<StreamName, readonly BusService[]>(readers).flatMap(([stream, services]) =>
    services.includes(service) ? [stream] : [],
  );
  return {
    publish: read.flatMap((stream) => [`$JS.API.STREAM.INFO.${stream}`, `$JS.API.DIRECT.GET.${stream}`]),
    subscribe: read.flatMap((stream) => streams[stream].subjects),
  };
};

const counting = (service: BusService): string[] => {
  const counted = entries<StreamName, readonly BusService[]>(counters).flatMap(([stream, services]) =>
    services.includes(service) ? [stream] : [],
  );
  return [...counted, ...streamsMeasuredBy(service)].map((stream) => `$JS.API.STREAM.INFO.${stream}`);
};

const keepingRoom = (service: BusService): string[] =>
  entries<StreamName, BusService>(roomKeepers).flatMap(([stream, keeper]) => {
    if (keeper !== service) return [];
    const own = entries<DurableName, { stream: StreamName }>(durables).filter(
      ([durable, definition]) => definition.stream === stream && ownerOf(durable) !== undefined,
    );
    return [
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.DIRECT.GET.${stream}`,
      ...own.map(([durable]) => `$JS.API.CONSUMER.INFO.${stream}.${durable}`),
    ];
  });

/** Reads dead letters, records replays, and publishes on every subject of Herald's durables. */
const replayingDeadLetters = (service: BusService): string[] => {
  if (!deadLetterReplayers.includes(service)) return [];
  const taken = entries<DurableName, { filters: readonly string[] }>(durables).flatMap(([durable, { filters }]) =>
    ownerOf(durable) === undefined ? [] : filters,
  );
  const revived = Object.values(messages).filter(({ filter }) => taken.some((one) => overlaps(one, filter)));
  return [
    "$JS.API.STREAM.INFO.PUSH_DLQ",
    "$JS.API.DIRECT.GET.PUSH_DLQ",
    "$JS.API.DIRECT.GET.KV_push_replays",
    ...revived.map(({ filter }) => filter),
  ];
};

/** The server accepts replies to requests from another account on these subjects, and nothing unsolicited. */
export const answersTo = "_R_.>";

/** Single requests and the service that sends them. */
const single = entries<BusService, readonly { service: BusService; subject: string }[]>(asks).flatMap(
  ([asker, questions]) => questions.map((one) => [asker, one] as const),
);

/** The requests that a service answers; none if no service sends any. */
export const askedOf = (service: BusService): string[] =>
  askers[service].length > 0 || single.some(([, one]) => one.service === service) ? [`push.req.v1.${service}.>`] : [];

/** Publishes requests to services, and replies where the server expects them. */
const conversing = (service: BusService) => ({
  publish: [
    ...single.flatMap(([asker, one]) => (asker === service ? [one.subject] : [])),
    ...busServices.filter((asked) => includes(askers[asked], service)).map((asked) => `push.req.v1.${asked}.>`),
    ...(askedOf(service).length > 0 ? [answersTo] : []),
  ],
  subscribe: askedOf(service),
});

const includes = (services: readonly BusService[], service: BusService): boolean => services.includes(service);

const servicePermissions = (service: BusService): BusPermissions => {
  const { publish, subscribe } = conversing(service);
  const read = ofStreams(service);
  const all = [
    ...publish,
    ...publishing(service),
    ...replayingDeadLetters(service),
    ...ofDurables(service),
    ...keepingRoom(service),
  ];
  const unique = new Set([
    ...all,
    ...reading(service),
    ...inspecting(service),
    ...counting(service),
    ...read.publish,
    ...ofBuckets(service),
  ]);
  return {
    publish: [...unique],
    subscribe: [`${inboxPrefixOf(serviceUser(service))}.>`, ...subscribe, ...read.subscribe],
  };
};

const durableStreams = [...new Set(Object.values(durables).map(({ stream }) => stream))];

/** Creates and updates streams and durables, and deletes only durables of events. It publishes no message and reads no bucket. */
const bootstrapPermissions: BusPermissions = {
  publish: [
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.CREATE.*",
    "$JS.API.STREAM.UPDATE.*",
    "$JS.API.CONSUMER.LIST.*",
    "$JS.API.CONSUMER.INFO.*.*",
    ...durableStreams.flatMap((stream) => [
      `$JS.API.CONSUMER.CREATE.${stream}.>`,
      `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.*`,
    ]),
    `$JS.API.CONSUMER.DELETE.${consumedStream}.*`,
  ],
  subscribe: [`${inboxPrefixOf(serviceUser("bootstrap"))}.>`],
};

const restricted = (user: string, permissions: BusPermissions): BusUser => ({
  user,
  inboxPrefix: inboxPrefixOf(user),
  permissions,
});

/** The user of an external consumer, for its durable. */
export const consumerUser = (user: string, durable: string): BusUser =>
  restricted(user, consumerPermissions(durable, inboxPrefixOf(user)));

/**
 * The initial users of Herald's broker: one for each service and for the bootstrap step, `opens` for the first consumer of open events,
 * and `admin` for people; no part of Herald runs as `admin`.
 */
export const busUsers = {
  gateway: restricted(serviceUser("gateway"), servicePermissions("gateway")),
  registry: restricted(serviceUser("registry"), servicePermissions("registry")),
  dispatch: restricted(serviceUser("dispatch"), servicePermissions("dispatch")),
  analytics: restricted(serviceUser("analytics"), servicePermissions("analytics")),
  bootstrap: restricted(serviceUser("bootstrap"), bootstrapPermissions),
  opens: consumerUser("analytics", "consumers-opens" satisfies DurableName),
  admin: { user: "herald", inboxPrefix: "_INBOX" },
} as const satisfies Record<string, BusUser>;

export type BusUserName = keyof typeof busUsers;
