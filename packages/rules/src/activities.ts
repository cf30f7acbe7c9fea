import { hash } from "node:crypto";
import {
  type ActivityAlert,
  type ActivityEvent,
  type ActivityId,
  type ActivityKey,
  type ActivityPush,
  type ActivityRecord,
  activityLimits,
  type DeviceId,
  derivedNotificationId,
  type EndActivity,
  type NewActivity,
  type NotificationId,
  type PatchActivity,
  type SendV1,
} from "@herald/contracts";

/** How long a record is still kept. */
export const keptMsOf = ({ createdAt }: ActivityRecord, now: Date): number =>
  Math.max(1_000, createdAt + activityLimits.keptMs - now.getTime());

const seconds = (at: number): number => Math.floor(at / 1_000);
const utc = (time: string | undefined): string | undefined => time && new Date(time).toISOString();

/** A field that is undefined is not stored. */
const stored = (record: ActivityRecord): ActivityRecord =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as ActivityRecord;

export const newActivityRecord = (activity: NewActivity, put: string, now: Date): ActivityRecord => {
  const at = now.getTime();
  return stored({
    put,
    attributesType: activity.attributes_type,
    attributes: activity.attributes,
    targets: activity.targets,
    start: activity.start,
    via: activity.via,
    app: activity.app,
    kind: activity.kind,
    labels: activity.labels,
    // Its own start alone shows it. A card of the app, or one that is there already, needs no alert.
    startAlert: activity.start ? activity.alert : undefined,
    version: 1,
    timestamp: seconds(at),
    writtenAt: at,
    contentState: activity.content_state,
    staleAt: utc(activity.stale_at),
    relevance: activity.relevance,
    priority: activity.priority,
    createdAt: at,
    endsAt: activity.ends_at === undefined ? at + activityLimits.longestMs : Date.parse(activity.ends_at),
    nextAt: at + activityLimits.versionMs,
  });
};

const nextVersion = ({ version, timestamp }: ActivityRecord, now: Date) => ({
  version: version + 1,
  timestamp: Math.max(seconds(now.getTime()), timestamp + 1),
  writtenAt: now.getTime(),
});

/** An alert that no push has shown yet waits for the next version, unless that has its own. */
const alertAfter = ({ alert }: ActivityRecord, own: ActivityAlert | undefined) =>
  own ?? (alert?.pushed === undefined ? alert : undefined);

/** The result of a write: a record to store, or why nothing is written. */
export type Written =
  | { readonly kind: "written"; readonly record: ActivityRecord }
  /** The request is a repeat, or came too late: the newest version answers it. */
  | { readonly kind: "unchanged" | "ended" }
  | { readonly kind: "too-fast"; readonly waitMs: number };

export const changeActivity = (record: ActivityRecord, change: PatchActivity, now: Date): Written => {
  if (record.end) return { kind: "ended" };
  if (change.sequence !== undefined && change.sequence <= (record.sequence ?? -1)) return { kind: "unchanged" };
  const at = now.getTime();
  const nextAt = Math.max(record.nextAt, at) + activityLimits.versionMs;
  const waitMs = nextAt - at - activityLimits.burst * activityLimits.versionMs;
  if (waitMs > 0) return { kind: "too-fast", waitMs };
  return {
    kind: "written",
    record: stored({
      ...record,
      ...nextVersion(record, now),
      contentState: change.content_state,
      staleAt: utc(change.stale_at),
      relevance: change.relevance,
      priority: change.priority,
      sequence: change.sequence ?? record.sequence,
      alert: alertAfter(record, change.alert),
      nextAt,
    }),
  };
};

/** `body`: of the request; absent: at `endsAt`. */
export const endActivity = (
  key: ActivityKey,
  record: ActivityRecord,
  { content_state, dismiss_at, alert }: EndActivity,
  now: Date,
  body?: string,
): Written => {
  if (record.end) return { kind: record.end.body !== undefined && record.end.body === body ? "unchanged" : "ended" };
  const next = nextVersion(record, now);
  const by =
    body === undefined ? scheduledEndId(key, record) : versionId(key, { ...next, createdAt: record.createdAt });
  const dismissAt = utc(dismiss_at);
  return {
    kind: "written",
    record: stored({
      ...record,
      ...next,
      contentState: content_state ?? record.contentState,
      staleAt: undefined,
      priority: undefined,
      alert: alertAfter(record, alert),
      end: { at: now.getTime(), by, ...(body !== undefined && { body }), ...(dismissAt && { dismissAt }) },
    }),
  };
};

type Version = Pick<ActivityRecord, "version" | "writtenAt" | "createdAt">;

const idOf = ({ projectId, id }: ActivityKey, { createdAt }: Version, what: string, at: number): NotificationId =>
  derivedNotificationId(`activity/${projectId}/${id}/${createdAt}/${what}`, new Date(at));

const versionId = (key: ActivityKey, record: Version): NotificationId =>
  idOf(key, record, `${record.version}`, record.writtenAt);
const scheduledEndId = (key: ActivityKey, record: Version): NotificationId =>
  idOf(key, record, "end", record.createdAt);

/** The notification that sends the newest version. */
export const newestSendId = (key: ActivityKey, record: ActivityRecord): NotificationId =>
  record.end?.by ?? versionId(key, record);

/** The notification that sent the first version. */
export const firstSendId = (key: ActivityKey, { createdAt }: ActivityRecord): NotificationId =>
  versionId(key, { version: 1, writtenAt: createdAt, createdAt });

/** What a push says of the newest state. */
export const activityPush = (id: ActivityId, record: ActivityRecord, event: ActivityEvent): ActivityPush => {
  const { pushed: _, ...alert } = record.alert ?? {};
  return {
    id,
    version: record.version,
    event,
    ...(event === "start" && { attributes_type: record.attributesType, attributes: record.attributes }),
    content_state: record.contentState,
    timestamp: record.timestamp,
    ...(event === "start" && record.startAlert && { alert: record.startAlert }),
    ...((event === "update" || event === "end") && record.alert && { alert: alert as ActivityAlert }),
    ...(record.staleAt !== undefined && { stale_at: record.staleAt }),
    ...(record.end?.dismissAt !== undefined && { dismiss_at: record.end.dismissAt }),
    ...(record.relevance !== undefined && { relevance: record.relevance }),
    ...(event === "join" && record.end && { ended: true as const }),
  };
};

/** Apple's priority of a push. */
export const activityPriority = (record: Pick<ActivityRecord, "priority">, push: ActivityPush): "high" | "normal" =>
  record.priority ?? (push.event === "start" || push.event === "end" || push.alert ? "high" : "normal");

/** A push that is late by this much still goes out: clocks differ. */
const graceMs = 60_000;

type SendFields = Pick<SendV1, "notificationId"> & { readonly event: ActivityEvent; readonly at: number };

const sendOf = (
  { projectId, id }: ActivityKey,
  record: ActivityRecord,
  { notificationId, event, at }: SendFields,
  more: { readonly targets?: readonly string[]; readonly sendAt?: number } = {},
): SendV1 => {
  const push = activityPush(id, record, event);
  const starts = more.sendAt ?? at;
  const expiresAt = event === "end" ? starts + activityLimits.dismissMs : Math.max(record.endsAt, starts + graceMs);
  const { app, kind, labels } = record;
  return {
    projectId,
    notificationId,
    content: {
      targets: [...(more.targets ?? record.targets)],
      ...(app !== undefined && { app }),
      ...(kind !== undefined && { kind }),
      ...(labels && { labels }),
      push_type: "liveactivity",
      priority: activityPriority(record, push),
      ttl: Math.ceil((expiresAt - starts) / 1_000),
      activity: push,
      ...(more.sendAt !== undefined && { send_at: new Date(more.sendAt).toISOString() }),
    },
    acceptedAt: new Date(at).toISOString(),
    ...(more.sendAt !== undefined && { sendAt: new Date(more.sendAt).toISOString() }),
    expiresAt: new Date(expiresAt).toISOString(),
  };
};

/** The sends of a new activity: its start, its state for the devices that have it already, and its end at `ends_at`. */
export const firstSends = (key: ActivityKey, record: ActivityRecord): SendV1[] => {
  const at = record.createdAt;
  const { version: _, ...end } = activityPush(key.id, record, "end");
  const scheduled = sendOf(
    key,
    record,
    { notificationId: scheduledEndId(key, record), event: "end", at },
    { sendAt: record.endsAt },
  );
  const state = sendOf(key, record, {
    notificationId: record.start ? idOf(key, record, "held", at) : versionId(key, record),
    event: "update",
    at,
  });
  const start = sendOf(key, record, { notificationId: versionId(key, record), event: "start", at });
  return [...(record.start ? [start] : []), state, { ...scheduled, content: { ...scheduled.content, activity: end } }];
};

/** The send of the newest version after the first. Undefined: the end at `ends_at` sends it. */
export const newestSend = (key: ActivityKey, record: ActivityRecord): SendV1 | undefined => {
  if (record.end && record.end.body === undefined) return undefined;
  const event = record.end ? "end" : "update";
  return sendOf(key, record, { notificationId: newestSendId(key, record), event, at: record.writtenAt });
};

/** The channels without the newest version, by name. The first one is in every start, and in what an app reads that starts its own. */
export const unsentChannels = ({ version, channels = {} }: ActivityRecord) =>
  Object.entries(channels).filter(([, { id, sent = 1 }]) => id !== undefined && sent < version);

/** The message that broadcasts the newest version. Undefined: no channel needs it. */
export const broadcastDue = ({ projectId, id }: ActivityKey, record: ActivityRecord) => {
  const { version, createdAt } = record;
  const data = { projectId, activityId: id, version };
  return unsentChannels(record).length > 0
    ? { data, id: `${projectId}/${id}/${createdAt}/${version}/broadcast` }
    : undefined;
};

/** A device that has the same version already gets it again with its last token of a minute, and a little later. */
const joinEveryMs = 60_000;
const joinDelayMs = 5_000;

/**
 * When a device gets the newest state that had it at `now` for an earlier token: the same time for all of its tokens of a minute. Devices have
 * minutes of their own, so that their pushes are not all due at the same moment.
 */
export const laterJoin = (deviceId: DeviceId, now: Date): Date => {
  const begin = hash("sha256", deviceId, "buffer").readUInt32BE() % joinEveryMs;
  const minute = Math.floor((now.getTime() + joinDelayMs - begin) / joinEveryMs) + 1;
  return new Date(begin + minute * joinEveryMs);
};

/** Exists while a device that gets another token has the version: the `at` of a later join, or the version. */
export const joinKey = ({ projectId, id }: ActivityKey, deviceId: DeviceId, what: string): string =>
  `join.${projectId}.${id}.${deviceId}.${what}`;
export const joinKeptMs = joinEveryMs;

type Joined = { readonly deviceId: DeviceId; readonly tokenHash: string; readonly at: string };

/** The send of the newest state to a device whose token came at a time. `sendAt`: one send for all of its tokens until then. */
export const joinSend = (
  key: ActivityKey,
  record: ActivityRecord,
  { deviceId, tokenHash, at, sendAt: later }: Joined & { readonly sendAt?: string | undefined },
): SendV1 => {
  const send = (what: string, made: number, sendAt?: number) =>
    sendOf(
      key,
      record,
      { notificationId: idOf(key, record, `join/${deviceId}/${what}`, made), event: "join", at: made },
      { targets: [deviceId], ...(sendAt !== undefined && { sendAt }) },
    );
  if (later === undefined) return send(`${tokenHash}/${record.version}`, Date.parse(at));
  const sendAt = Date.parse(later);
  // Its id and its time are those of the first of them, whichever comes first.
  return send(later, sendAt - joinEveryMs - joinDelayMs, sendAt);
};
