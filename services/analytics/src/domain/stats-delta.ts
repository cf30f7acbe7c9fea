import { createHash } from "node:crypto";
import {
  type DataOf,
  type DeliveryAcceptedV1,
  type DeliveryFailedV1,
  idTime,
  type NotificationId,
  type ProjectId,
  type Tag,
} from "@herald/contracts";
import { countedTags, toTags } from "@herald/rules";
import type { Report } from "./report.ts";

/** The end of a bucket is 5 % above its start, so that its middle is at most 2.5 % off. */
const growth = Math.log(1.05);
/** Shorter times share the first bucket: people are not faster, and clocks differ by more. */
const minMs = 100;

export const timeBucket = (ms: number): number => Math.max(0, Math.floor(Math.log(ms / minMs) / growth) || 0);

/** The middle of a bucket, in seconds, to the millisecond. */
const secondsOf = (bucket: number): number => Math.round(minMs * Math.exp((bucket + 0.5) * growth)) / 1000;

/** Percentiles in seconds of a histogram by bucket; undefined when it is empty. */
export const timesToOpen = (histogram: Readonly<Record<string, number>>) => {
  const buckets = Object.entries(histogram)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .toSorted(([one], [other]) => one - other);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return undefined;
  const at = (share: number): number => {
    // Nearest rank: the smallest value that this share is at or below.
    let left = Math.ceil(total * share);
    for (const [bucket, count] of buckets) {
      left -= count;
      if (left <= 0) return secondsOf(bucket);
    }
    return 0;
  };
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
};

/** The finest unit of statistics: in every time zone days begin on a quarter of an hour. */
export const slotMs = 900_000;

/** The counts that one fact adds to the figures of a notification in one quarter of an hour. */
export type Increment = {
  readonly notificationId: NotificationId;
  /** Start of the quarter. */
  readonly slot: Date;
  /** Which rollups it changes; absent: all. A rebuild may change only some, and opens change the rollups of tags separately. */
  readonly only?: "hours" | "total" | "tags";
  /** Kind and labels of the notification; absent: none. */
  readonly tags?: readonly Tag[];
  /** Counter paths, such as `sent.ios`, `failed.ios.unregistered`, `skipped.ios.muted`, `opened`, `received.ios` or `buttons.track`, and what to add. */
  readonly adds: readonly (readonly [path: string, count: number])[];
  readonly opens?: {
    readonly first: Date;
    readonly last: Date;
    /** Times to open: each bucket, and how many opens it has. */
    readonly times: readonly (readonly [bucket: number, count: number])[];
  };
};

/** The counts that one message adds to the statistics. They count once per id, however often the message is delivered. */
export type StatsDelta = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly kind: "deliveries" | "opens" | "receipts" | "taggedOpens" | "taggedReceipts";
  readonly increments: readonly Increment[];
};

/** Groups of the items with the same key, each with at least one. */
export const groupsOf = <Item>(items: Iterable<Item>, keyOf: (item: Item) => string) =>
  [...Map.groupBy(items, keyOf).values()] as [Item, ...Item[]][];

const slotOf = (at: Date): Date => new Date(Math.floor(at.getTime() / slotMs) * slotMs);

/** Adds to the count of a key. */
export const addCount = <Key>(counts: Map<Key, number>, key: Key, count: number): void => {
  counts.set(key, (counts.get(key) ?? 0) + count);
};

const tally = <Key>(keys: Iterable<Key>): [Key, number][] => {
  const counts = new Map<Key, number>();
  for (const key of keys) addCount(counts, key, 1);
  return [...counts];
};

/** A reason becomes a field name, in which dots and dollar signs would be paths and operators. */
const reasonField = (reason: string): string => (/^[a-z0-9-]{1,64}$/.test(reason) ? reason : "other");

export type SettledData = DataOf<typeof DeliveryAcceptedV1> | DataOf<typeof DeliveryFailedV1>;

/** Each batch counts once as accepted and once as failed, whatever the ids of its events. */
export const deliveryDelta = (data: SettledData): StatsDelta => {
  const { project_id: projectId, notification_id: notificationId, batch_id: batchId, platform } = data;
  const adds: [string, number][] =
    "devices" in data
      ? [
          [`sent.${platform}`, data.devices.length],
          ...(data.asked ? ([[`asked.${platform}`, data.asked]] as [string, number][]) : []),
        ]
      : tally(
          data.failures
            .filter(({ status }) => status === "failed" || status === "skipped")
            .map(({ status, reason }) => `${status}.${platform}.${reasonField(reason)}`),
        );
  const { activity, kind, labels, push_type } = data;
  // An activity counts once: its versions and its end are in the figures of its push type, kind and labels alone.
  const isVersion = activity !== undefined && activity.event !== "start";
  const tags = (kind ?? labels ?? push_type) === undefined ? undefined : toTags({ kind, labels, push_type });
  return {
    _id: `${batchId}/${"devices" in data ? "accepted" : "failed"}`,
    projectId,
    kind: "deliveries",
    increments: [
      {
        notificationId,
        slot: slotOf(new Date(data.at)),
        adds,
        ...(tags && { tags }),
        ...(isVersion && { only: "tags" as const }),
      },
    ],
  };
};

/** Derived from the content, because a group of reports that is replayed from the dead letters has a new message id. */
export const reportId = (projectId: ProjectId, reports: readonly unknown[]): string =>
  createHash("sha256")
    .update(JSON.stringify([projectId, reports]))
    .digest("base64url");

const countsOf = (reports: readonly Report[]): [path: string, count: number][] =>
  tally(
    reports.flatMap(({ kind, platform }) => {
      // A receipt always has a platform.
      if (kind !== undefined) return `${kind}.${platform}`;
      return platform === undefined ? "opened" : ["opened", `openedOn.${platform}`];
    }),
  );

/** Whether a counter belongs to the figures of a whole notification, too. */
export const isInTotal = (path: string): boolean => path === "opened" || /^(received|dismissed|buttons)\./.test(path);

/** `sendTimes`: `send_at` of the notifications that have one. */
export const reportIncrements = (
  reports: readonly Report[],
  sendTimes: ReadonlyMap<NotificationId, Date>,
): Increment[] => {
  const groups = groupsOf(
    reports,
    ({ notificationId, kind, at }) => `${notificationId}/${kind}/${slotOf(at).getTime()}`,
  );
  return groups.map((group): Increment => {
    const [{ notificationId, kind, at }] = group;
    const slot = { notificationId, slot: slotOf(at), adds: countsOf(group) };
    if (kind !== undefined) return slot;
    const start = (sendTimes.get(notificationId) ?? idTime(notificationId)).getTime();
    const times = group.map((open) => open.at.getTime());
    return {
      ...slot,
      opens: {
        first: new Date(Math.min(...times)),
        last: new Date(Math.max(...times)),
        times: tally(times.map((time) => timeBucket(time - start))),
      },
    };
  });
};

/**
 * The counts that reports add to the figures of their kinds and labels; empty if they have none. Reports of the same tags and quarter
 * share an increment: a campaign would otherwise need one for each notification.
 */
export const taggedIncrements = (
  reports: readonly Report[],
  tagsOf: (id: NotificationId) => readonly Tag[],
): Increment[] => {
  const tagged = reports.flatMap((report) => {
    const tags = countedTags(tagsOf(report.notificationId));
    return tags.length === 0 ? [] : [{ ...report, slot: slotOf(report.at), tags }];
  });
  const groups = groupsOf(tagged, ({ slot, tags }) => `${slot.getTime()}\n${tags.join("\n")}`);
  return groups.map((group): Increment => {
    const [{ notificationId, slot, tags }] = group;
    return { notificationId, slot, only: "tags", tags, adds: countsOf(group) };
  });
};

/** The counts of opens by button, in the figures of their notification alone. */
export const buttonIncrements = (reports: readonly Report[]): Increment[] =>
  groupsOf(
    reports.filter(({ button }) => button !== undefined),
    ({ notificationId }) => notificationId,
  ).map((group): Increment => {
    const [{ notificationId, at }] = group;
    return {
      notificationId,
      slot: slotOf(at),
      only: "total",
      adds: tally(group.map(({ button }) => `buttons.${button}`)),
    };
  });
