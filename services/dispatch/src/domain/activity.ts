import {
  type ActivityChannelRecord,
  type ActivityKey,
  type ActivityPush,
  type ActivityRecord,
  activityLimits,
} from "@herald/contracts";
import { activityPush, endActivity } from "@herald/rules";

/** What a row of an activity's notification sends, by the record as it is just before the push. */
type ActivityAction =
  | { readonly kind: "push"; readonly push: ActivityPush }
  /** Nothing is pushed: a newer version, or the end, has a send of its own. */
  | { readonly kind: "replaced" }
  /** The record must be written first, by a compare-and-set. Then the row's action is found again. */
  | { readonly kind: "write"; readonly record: ActivityRecord };

const replaced: ActivityAction = { kind: "replaced" };

/** The alert of a version: the first push of the version claims it, so that no other version shows it. */
const withAlert = (record: ActivityRecord, push: ActivityPush): ActivityAction => {
  const { alert } = record;
  if (alert === undefined) return { kind: "push", push };
  if (alert.pushed === undefined)
    return { kind: "write", record: { ...record, alert: { ...alert, pushed: record.version } } };
  if (alert.pushed === record.version) return { kind: "push", push };
  const { alert: _, ...silent } = push;
  return { kind: "push", push: silent };
};

/** The record that ends an activity at `ends_at`. Undefined: a request has ended it. */
export const endAtItsTime = (key: ActivityKey, record: ActivityRecord, now: Date): ActivityRecord | undefined => {
  const ended = endActivity(key, record, {}, now);
  return ended.kind === "written" ? ended.record : undefined;
};

/**
 * What to do for a row of an activity's notification. `record` undefined: it is gone, after its time or with the broker's data. The end at
 * `ends_at` is the only one without a version.
 *
 * Every version is written before the audience of its send is read. So a start and a join take the newest state, and need no repeat after the push: a device's token is stored before its join is sent, so a
 * version that is written after this read is sent to the device too.
 */
export const activityActionOf = (
  key: ActivityKey,
  record: ActivityRecord | undefined,
  sent: ActivityPush,
): ActivityAction => {
  const { event, version } = sent;
  if (record === undefined) return version === undefined ? replaced : { kind: "push", push: sent };
  const newest = (): ActivityPush => activityPush(key.id, record, event);
  if (event === "join") return { kind: "push", push: newest() };
  if (event === "start") return record.end ? replaced : { kind: "push", push: newest() };
  // The end at `ends_at`, unless a request ended it before.
  if (version === undefined)
    return record.end && record.end.body === undefined ? { kind: "push", push: newest() } : replaced;
  // A record with an older version comes from a backup of the broker.
  if (record.version < version) return { kind: "push", push: sent };
  return record.version > version ? replaced : withAlert(record, newest());
};

/** When no device needs the channels of an activity any more: iOS has removed it by then, and its end is not retried any longer. */
export const channelsDueAt = ({ end, endsAt }: Pick<ActivityRecord, "end" | "endsAt">): number =>
  (end?.at ?? endsAt) + activityLimits.dismissMs;

/** The beginnings of all ids of an app, to tell later which are new. Null: not known, or too many for a record. */
export const prefixesOf = (listed: readonly string[] | undefined): string | null =>
  listed && listed.length <= 100 ? listed.map(prefixOf).join(" ") : null;
const prefixOf = (id: string): string => id.slice(0, 8);

/** When an ask without an answer is looked at: its request has ended by then. After `lookWithinMs` nothing can be told. */
export const lookAfterMs = 60_000;
export const lookWithinMs = 600_000;
/** Longer than any activity that could follow a channel, of whichever installation: its own Herald has deleted it by then. */
const neededMs = 13 * 3_600_000;

/** When a channel is to be deleted, or an ask without an answer looked at, in milliseconds since 1970. */
export const cleanAtOf = (
  record: Pick<ActivityRecord, "end" | "endsAt">,
  { id, left, askedAt, before }: ActivityChannelRecord,
): number => {
  if (left) return left.at;
  if (id !== undefined) return channelsDueAt(record);
  return before === undefined ? Number.POSITIVE_INFINITY : askedAt + lookAfterMs;
};

/** The channel that a lost answer left at Apple, and when to delete it. Undefined in any doubt: other senders may use the app. */
export const leftChannel = (
  { createdAt }: Pick<ActivityRecord, "createdAt">,
  { askedAt, before }: Pick<ActivityChannelRecord, "askedAt" | "before">,
  listed: readonly string[],
  at: number,
): ActivityChannelRecord["left"] => {
  if (typeof before !== "string" || at - askedAt > lookWithinMs) return undefined;
  const known = new Set(before.split(" "));
  const [id, ...others] = listed.filter((one) => !known.has(prefixOf(one)));
  const isKept = at + neededMs < createdAt + activityLimits.keptMs;
  return id !== undefined && others.length === 0 && isKept ? { id, at: at + neededMs } : undefined;
};
