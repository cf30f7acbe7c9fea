import { z } from "zod";
import { ActivityId } from "./activity-push.ts";
import { AskedRules } from "./asked-rules.ts";
import { DeliverBatchV1 } from "./deliver-batch.ts";
import { DevicePaths } from "./device-values.ts";
import { type DataOf, defineMessage } from "./envelope.ts";
import { Proposal } from "./http/v1/approval.ts";
import { LocalTime } from "./http/v1/local-time.ts";
import { NotificationContent } from "./http/v1/notification-content.ts";
import { maxRolloutMs } from "./http/v1/rollout.ts";
import { bucketCount, DeviceId, ImportId, maxGroupSize, NotificationId, ProjectId } from "./ids.ts";
import { AppId, Lane } from "./platforms.ts";
import { activityPushKey, PushKey, pushKeyOf } from "./push-types.ts";
import { PersonalTexts, RecipientKind, RecipientLine, targetOfRecipient } from "./recipients.ts";
import { OpenGroupV1, ReceiptGroupV1 } from "./report-groups.ts";
import { maxTtlSeconds, nowOrNeverMs } from "./ttl.ts";

const time = z.iso.datetime();
const count = z.number().int().min(0);
const bucket = count.max(bucketCount - 1);

/** The gateway accepted a notification: dispatch stores it and starts its expansion. */
export const SendV1 = defineMessage(
  "SendV1",
  "push.cmd.v1.dispatch.send.:projectId.:notificationId",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    content: NotificationContent,
    acceptedAt: time,
    /** When to send it; absent or past: now. */
    sendAt: time.optional(),
    /** No chunk starts after this. */
    expiresAt: time,
    /** It is sent at the local time of each device, in waves; `sendAt` is the earliest. */
    local: LocalTime.optional(),
    /** Dispatch renders these for each device; absent: the texts are in `content`. */
    personal: PersonalTexts.optional(),
    /** The recipients that came with the request, in chunks within {@link recipientLimits}. */
    recipients: z.array(z.array(RecipientLine)).optional(),
    /** It waits for approval; absent: it needs none. */
    proposal: Proposal.optional(),
  }),
);
export type SendV1 = DataOf<typeof SendV1>;

/** For how many milliseconds a send is worth delivering from its beginning, by its `ttl` in seconds. */
export const ttlMsOf = (ttl = maxTtlSeconds): number => (ttl === 0 ? nowOrNeverMs : ttl * 1_000);

/** For how many milliseconds from its beginning a notification lives: each part of a rollout is worth delivering for its `ttl`. */
export const lifeMsOf = ({ ttl, rollout }: Pick<NotificationContent, "ttl" | "rollout">): number =>
  ttlMsOf(ttl) + (rollout === undefined ? 0 : maxRolloutMs);

/** The targets of a send, or its recipients as targets. */
export const targetsOfSend = ({ content, recipients }: Pick<SendV1, "content" | "recipients">): string[] =>
  content.recipients === undefined || recipients === undefined
    ? content.targets
    : recipients.flat().map((line) => targetOfRecipient(content.recipients?.kind, line));

/** The devices of its targets that a notification is for; absent: all. */
export type Narrowing = {
  /** Those of this app. */
  readonly app?: AppId;
  /** Those with a token of the push type … */
  readonly push?: PushKey;
  /** … and without this one. */
  readonly without?: PushKey;
};

/** The audience of a notification as registry is asked for it. */
export const audienceOfContent = (
  content: Pick<NotificationContent, "targets" | "app" | "push_type" | "push_name" | "activity">,
): { readonly targets: string[] } & Narrowing => {
  const { targets, app, push_type: type, activity } = content;
  const push = type === undefined && activity === undefined ? undefined : pushKeyOf(content);
  return {
    targets,
    ...(app !== undefined && { app }),
    ...(push !== undefined && { push }),
    // A device that has the activity already is not given a second one.
    ...(activity?.event === "start" && { without: activityPushKey(activity.id) }),
  };
};

/** A send in a group, with the HTTP request that contained it: a group has sends of many requests. */
export const GroupedSend = SendV1.schema.extend({
  origin: z
    .object({ requestId: z.string().optional(), traceparent: z.string().optional(), tracestate: z.string().optional() })
    .optional(),
});
export type GroupedSend = z.output<typeof GroupedSend>;

/**
 * Small sends of any projects that the gateway accepted at the same moment. They share a message because the broker's cost is per fsynced
 * message. `groupId` is the {@link sendGroupOf} of each notification. Each send is checked by itself, before it joins a group and by
 * {@link readGroup}, so that none fails with another.
 */
export const SendGroupV1 = defineMessage(
  "SendGroupV1",
  "push.send.v1.group.:groupId",
  z.object({ groupId: NotificationId, sends: z.array(z.unknown()).min(1).max(maxGroupSize) }),
);
export type SendGroupV1 = DataOf<typeof SendGroupV1>;

/** The sends of a group, and what in it does not match {@link GroupedSend}, with the reason. */
export const readGroup = ({ sends: all }: Pick<SendGroupV1, "sends">) => {
  const sends: GroupedSend[] = [];
  const malformed: { readonly data: unknown; readonly error: z.ZodError }[] = [];
  for (const one of all) {
    const { data, error } = GroupedSend.safeParse(one);
    if (data) sends.push(data);
    else malformed.push({ data: one, error });
  }
  return { sends, malformed };
};

/**
 * A small send of a repeated request whose first attempt may have published it in a group. It has its own message, because the group's
 * message may still exist and contain other sends.
 */
export const SendOneV1 = defineMessage("SendOneV1", "push.send.v1.one.:notificationId", GroupedSend);
export type SendOneV1 = DataOf<typeof SendOneV1>;

/**
 * A project has small sends in its backlog. The subject holds only one message, so one process at a time sends them, in order. The stream
 * refuses a second message while the first exists.
 */
export const DrainBacklogV1 = defineMessage(
  "DrainBacklogV1",
  "push.drain.v1.:projectId",
  z.object({ projectId: ProjectId }),
);

/** An expansion has at most a page for each bucket, so its pages have numbers of their own, and its batches ids of their own. */
export const pagesOfExpansion = bucketCount;

/** One of the expansions of a notification, which take place in turn. Most notifications have one. */
const Expansion = z.object({
  n: count,
  /** Only devices of these time zones; `none`: devices without one. */
  zones: z.array(z.string()).optional(),
  /** Only devices of these buckets, both included. */
  buckets: z.object({ from: bucket, to: bucket }).optional(),
  /** The index of time zones finds its devices with less work than the targets. Set after the first page. */
  byZone: z.boolean().optional(),
  /** Nothing is sent to its devices, for this reason. */
  skip: z.string().optional(),
});

/** A place in a chunk of recipients: before a line, or behind a device of it. Lines count from 0. */
const placeInChunk = { line: count, after: DeviceId.optional() };
export const PlaceInChunk = z.object(placeInChunk);
export type PlaceInChunk = z.infer<typeof PlaceInChunk>;

/** One page of a notification's audience: the active devices of the buckets `fromBucket` to `toBucket`, both included. */
export const ExpandV1 = defineMessage(
  "ExpandV1",
  "push.cmd.v1.registry.expand.:projectId.:notificationId.:page",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    page: count,
    fromBucket: bucket,
    /** Absent on the first page: registry chooses the width by the size of the audience, and sets it on later pages. */
    toBucket: bucket.optional(),
    /** None: the notification has `recipients`. */
    targets: z.array(z.string()),
    /**
     * The pages are parts of chunks of recipients of this kind, which dispatch stores, and their buckets mean nothing. The first part of chunk
     * `n` is page `n` × {@link pagesOfExpansion}; nearly all chunks have one.
     */
    recipients: RecipientKind.optional(),
    /** Of a further part: where it begins in its chunk, and the chunk's lines without an active device before that. */
    part: z.object({ ...placeInChunk, unmatched: z.array(count) }).optional(),
    /** Only devices of this app. */
    app: AppId.optional(),
    /** Only devices with a token of this push type, which is the token of the recipients. */
    push: PushKey.optional(),
    /** Not those with this token. */
    without: PushKey.optional(),
    /** The recipients get the values of their devices at these paths. */
    devicePaths: DevicePaths.optional(),
    rules: AskedRules.optional(),
    lane: Lane,
    expiresAt: time,
    /** Its pages count from `n` × {@link pagesOfExpansion}. */
    expansion: Expansion,
  }),
);
export type ExpandV1 = DataOf<typeof ExpandV1>;

/** All pages of an expansion are partitioned: the numbers of its root batches and of their devices. */
export const ExpandedV1 = defineMessage(
  "ExpandedV1",
  "push.cmd.v1.dispatch.expanded.:projectId.:notificationId",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    batches: count,
    devices: count,
    /** Targets that matched no active device, as sent. */
    unmatched: z.array(z.string()),
    /** The number of buckets per page, and the maximum number of batches per page. Absent: of a part of a rollout. */
    pages: z.object({ buckets: z.number().int().min(1).max(bucketCount), batches: count }).optional(),
    /** The expansion. */
    n: count,
  }),
);
export type ExpandedV1 = DataOf<typeof ExpandedV1>;

/**
 * A stored batch or notification is due, or an activity has something to do for its channels. `key` is its id as one token of a subject.
 */
export const DueV1 = defineMessage(
  "DueV1",
  "push.due.v1.:kind.:projectId.:key",
  z.object({
    kind: z.enum(["batch", "notification", "activity"]),
    projectId: ProjectId,
    key: z.string(),
    /** The batch's, the notification's or the activity's id. */
    id: z.string(),
  }),
);
export type DueV1 = DataOf<typeof DueV1>;

/**
 * With a device: it has another token of an activity that it is for, and dispatch sends it the current state. Without one: dispatch broadcasts
 * the activity's newest version to those of its channels that lack it, and deletes what is due.
 */
export const JoinActivityV1 = defineMessage(
  "JoinActivityV1",
  "push.cmd.v1.dispatch.join.:projectId.:activityId",
  z.object({
    projectId: ProjectId,
    activityId: ActivityId,
    /** The version that was written; absent: something else is due. */
    version: z.number().int().optional(),
    deviceId: DeviceId.optional(),
    tokenHash: z.string().optional(),
    /** When the app sent the token. */
    at: time.optional(),
    /** When the state is sent, to the token that the device has then; absent: at once. One send for each time. */
    sendAt: time.optional(),
  }),
);
export type JoinActivityV1 = DataOf<typeof JoinActivityV1>;

/** A line that the gateway could not read as text. */
const brokenLine = z.object({ n: z.number().int().min(1), problem: z.enum(["too-long", "not-utf8"]) });

/** Lines of an imported file, at most 500 and 512 KiB. `n` counts from 1. */
export const ImportChunkV1 = defineMessage(
  "ImportChunkV1",
  "push.import.v1.:projectId.:importId",
  z.object({
    projectId: ProjectId,
    importId: ImportId,
    firstLine: z.number().int().min(1),
    /** The number of lines from `firstLine`, including lines that are not in `content`: blank ones and the header. */
    lines: count,
    /** This chunk ends the file. */
    last: z.boolean(),
    /** The header of a CSV file; absent: each line stands alone. */
    header: z.string().optional(),
    /** When the gateway read the chunk: the time in the ids of new devices. */
    at: time,
    content: z.array(z.union([z.object({ n: z.number().int().min(1), text: z.string() }), brokenLine])),
  }),
);
export type ImportChunkV1 = DataOf<typeof ImportChunkV1>;

/** Every message that is not an event, by its name on the wire. */
export const commands = {
  SendV1,
  SendGroupV1,
  SendOneV1,
  DrainBacklogV1,
  ExpandV1,
  ExpandedV1,
  DeliverBatchV1,
  DueV1,
  JoinActivityV1,
  OpenGroupV1,
  ReceiptGroupV1,
  ImportChunkV1,
} as const;
