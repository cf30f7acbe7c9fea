import { createHash } from "node:crypto";
import {
  type DataOf,
  type DeliveryAcceptedV1,
  type DeliveryFailedV1,
  idTime,
  type NotificationId,
  type OpenGroupV1,
  type ProjectId,
} from "@herald/contracts";
import type { Open } from "./open.ts";
import { timeBucket } from "./time-to-open.ts";

/** Days of every time zone begin on a quarter of an hour, so that a quarter is the finest that is counted. */
export const slotMs = 900_000;

/** What one fact adds to the figures of one notification within one quarter of an hour. */
export type Part = {
  readonly notificationId: NotificationId;
  /** Start of the quarter. */
  readonly slot: Date;
  /** Which rollups it goes into, where a rebuild may not touch all: absent means all. */
  readonly only?: "hours" | "total";
  /** Path of a counter, such as `sent.ios`, `failed.ios.unregistered`, `opened` or `openedOn.ios`, and what to add. */
  readonly adds: readonly (readonly [path: string, count: number])[];
  readonly opens?: {
    readonly first: Date;
    readonly last: Date;
    /** Time to open: bucket and how many. */
    readonly times: readonly (readonly [bucket: number, count: number])[];
  };
};

/** What one message adds to the statistics: counted once under its id, however often the message comes. */
export type Contribution = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly kind: "deliveries" | "opens" | "scan";
  readonly parts: readonly Part[];
};

const slotOf = (at: Date): Date => new Date(Math.floor(at.getTime() / slotMs) * slotMs);

const tally = <Key>(keys: Iterable<Key>): [Key, number][] => {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts];
};

/** A reason becomes the name of a field, where a stranger's dots and dollars would be paths. */
const reasonField = (reason: string): string => (/^[a-z0-9-]{1,64}$/.test(reason) ? reason : "other");

/** One batch adds once to what was sent and once to what failed, whatever id its event came under. */
export const deliveryContribution = (
  data: DataOf<typeof DeliveryAcceptedV1> | DataOf<typeof DeliveryFailedV1>,
): Contribution => {
  const { project_id: projectId, notification_id: notificationId, batch_id: batchId, platform } = data;
  const adds: [string, number][] =
    "devices" in data
      ? [[`sent.${platform}`, data.devices.length]]
      : tally(
          data.failures
            .filter(({ status }) => status === "failed")
            .map(({ reason }) => `failed.${platform}.${reasonField(reason)}`),
        );
  return {
    _id: `${batchId}/${"devices" in data ? "accepted" : "failed"}`,
    projectId,
    kind: "deliveries",
    parts: [{ notificationId, slot: slotOf(new Date(data.at)), adds }],
  };
};

/** What makes a report of opens the same report, also when it comes out of the dead letters under a new id. */
export const reportId = ({ projectId, opens }: DataOf<typeof OpenGroupV1>): string =>
  createHash("sha256")
    .update(JSON.stringify([projectId, opens]))
    .digest("base64url");

/** The figures of opens that are stored. `since` gives the `send_at` of those notifications that have one. */
export const openParts = (opens: readonly Open[], since: ReadonlyMap<NotificationId, Date>): Part[] => {
  const groups = Map.groupBy(
    opens,
    ({ notificationId, openedAt }) => `${notificationId}/${slotOf(openedAt).getTime()}`,
  );
  return [...groups.values()].flatMap((group): Part[] => {
    const [one] = group;
    if (one === undefined) return [];
    const { notificationId } = one;
    const start = (since.get(notificationId) ?? idTime(notificationId)).getTime();
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
