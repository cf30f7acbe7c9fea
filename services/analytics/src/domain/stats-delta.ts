import { createHash } from "node:crypto";
import {
  type DataOf,
  type DeliveryAcceptedV1,
  type DeliveryFailedV1,
  idTime,
  type NotificationId,
  type NotificationOpenedV1,
  type OpenGroupV1,
  type ProjectId,
  type Tag,
  toTags,
} from "@herald/contracts";
import { type Open, openId } from "./open.ts";
import { timeBucket } from "./time-to-open.ts";

/** The finest unit of statistics: in every time zone days begin on a quarter of an hour. */
export const slotMs = 900_000;

/** What one fact adds to the figures of one notification within one quarter of an hour. */
export type Increment = {
  readonly notificationId: NotificationId;
  /** Start of the quarter. */
  readonly slot: Date;
  /** Which rollups it changes: a rebuild may touch only some, and opens come to those of tags on their own; absent: all. */
  readonly only?: "hours" | "total" | "tags";
  /** Kind and labels of the notification; absent: none. */
  readonly tags?: readonly Tag[];
  /** Counter paths, such as `sent.ios`, `failed.ios.unregistered`, `opened` or `openedOn.ios`, and what to add. */
  readonly adds: readonly (readonly [path: string, count: number])[];
  readonly opens?: {
    readonly first: Date;
    readonly last: Date;
    /** Time to open: bucket and how many. */
    readonly times: readonly (readonly [bucket: number, count: number])[];
  };
};

/** What one message adds to the statistics. It counts once under its id, however often the message is delivered. */
export type StatsDelta = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly kind: "deliveries" | "opens" | "taggedOpens";
  readonly increments: readonly Increment[];
};

const slotOf = (at: Date): Date => new Date(Math.floor(at.getTime() / slotMs) * slotMs);

const tally = <Key>(keys: Iterable<Key>): [Key, number][] => {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts];
};

/** A reason becomes a field name, in which dots and dollar signs would be paths and operators. */
const reasonField = (reason: string): string => (/^[a-z0-9-]{1,64}$/.test(reason) ? reason : "other");

/** Each batch counts once as accepted and once as failed, whatever the ids of its events. */
export const deliveryDelta = (
  data: DataOf<typeof DeliveryAcceptedV1> | DataOf<typeof DeliveryFailedV1>,
): StatsDelta => {
  const { project_id: projectId, notification_id: notificationId, batch_id: batchId, platform } = data;
  const adds: [string, number][] =
    "devices" in data
      ? [[`sent.${platform}`, data.devices.length]]
      : tally(
          data.failures
            .filter(({ status }) => status === "failed")
            .map(({ reason }) => `failed.${platform}.${reasonField(reason)}`),
        );
  const tags = toTags(data);
  return {
    _id: `${batchId}/${"devices" in data ? "accepted" : "failed"}`,
    projectId,
    kind: "deliveries",
    increments: [{ notificationId, slot: slotOf(new Date(data.at)), adds, ...(tags && { tags }) }],
  };
};

/** Short: a hundred million of them collide with a chance of one in 10^22. */
const keyLength = 22;

/**
 * What an open adds to the figures of its kind and labels; undefined for one without. Counted from the event, because only dispatch knows
 * them when the open arrives.
 */
export const taggedOpenDelta = (data: DataOf<typeof NotificationOpenedV1>): StatsDelta | undefined => {
  const tags = toTags(data);
  if (tags === undefined) return undefined;
  const { project_id: projectId, notification_id: notificationId, device_id: deviceId, platform, at } = data;
  const adds: [string, number][] = [["opened", 1]];
  if (platform !== undefined) adds.push([`openedOn.${platform}`, 1]);
  return {
    _id: createHash("sha256").update(openId({ notificationId, deviceId })).digest("base64url").slice(0, keyLength),
    projectId,
    kind: "taggedOpens",
    increments: [{ notificationId, slot: slotOf(new Date(at)), only: "tags", tags, adds }],
  };
};

/** Opens of the same tags and quarter as one increment: a campaign's opens would take a document each. */
export const mergeTaggedOpens = (increments: readonly Increment[]): Increment[] => {
  const groups = Map.groupBy(increments, ({ slot, tags = [] }) => `${slot.getTime()}\n${tags.join("\n")}`);
  return [...groups.values()].flatMap((group): Increment[] => {
    const [one] = group;
    if (one === undefined) return [];
    const adds = new Map<string, number>();
    for (const increment of group)
      for (const [path, count] of increment.adds) adds.set(path, (adds.get(path) ?? 0) + count);
    return [{ ...one, adds: [...adds] }];
  });
};

/** Derived from the content: a group of opens that is replayed from the dead letters has a new message id. */
export const reportId = ({ projectId, opens }: DataOf<typeof OpenGroupV1>): string =>
  createHash("sha256")
    .update(JSON.stringify([projectId, opens]))
    .digest("base64url");

/** `sendTimes`: `send_at` of those notifications that have one. */
export const openIncrements = (opens: readonly Open[], sendTimes: ReadonlyMap<NotificationId, Date>): Increment[] => {
  const groups = Map.groupBy(
    opens,
    ({ notificationId, openedAt }) => `${notificationId}/${slotOf(openedAt).getTime()}`,
  );
  return [...groups.values()].flatMap((group): Increment[] => {
    const [one] = group;
    if (one === undefined) return [];
    const { notificationId } = one;
    const start = (sendTimes.get(notificationId) ?? idTime(notificationId)).getTime();
    const times = group.map(({ openedAt }) => openedAt.getTime());
    return [
      {
        notificationId,
        slot: slotOf(one.openedAt),
        adds: [
          ["opened", group.length],
          ...tally(group.flatMap(({ platform }) => (platform === undefined ? [] : `openedOn.${platform}`))),
        ],
        opens: {
          first: new Date(Math.min(...times)),
          last: new Date(Math.max(...times)),
          times: tally(times.map((time) => timeBucket(time - start))),
        },
      },
    ];
  });
};
