import { z } from "zod";
import { ActivityAlert, ActivityAttributes, type ActivityId, ContentState } from "./activity-push.ts";
import { NotificationId, type ProjectId } from "./ids.ts";

const ms = z.number().int();

/** A broadcast channel that an activity has asked Apple for. Of one app and environment there is at most one, whatever came of it. */
const ActivityChannelRecord = z.object({
  /** Stored before Apple is asked. */
  askedAt: ms,
  /** While no answer is known: the beginnings of the ids that the app had before; null: not read, or too many. */
  before: z.string().nullable().optional(),
  /** Absent: not made, or deleted. */
  id: z.string().optional(),
  /** What an ask without an answer seems to have left at Apple. It is deleted at this time, when no activity can need it. */
  left: z.object({ id: z.string(), at: ms }).optional(),
  /** Why there is no channel, or why Apple refused the last broadcast. */
  problem: z.string().optional(),
  /** The last version that Apple accepted. */
  sent: z.number().int().optional(),
});
export type ActivityChannelRecord = z.infer<typeof ActivityChannelRecord>;

/** `push_activities`, `<project>.<activity>`: a Live Activity. Each write is a compare-and-set by the revision of the entry. */
export const ActivityRecord = z.object({
  /** SHA-256 of the `PUT`'s body: a repeat is the same request. */
  put: z.string(),
  attributesType: z.string(),
  attributes: ActivityAttributes,
  targets: z.array(z.string()),
  start: z.boolean(),
  via: z.literal("channel").optional(),
  /** By `<app>/<environment>`. Dispatch writes them. */
  channels: z.record(z.string(), ActivityChannelRecord).optional(),
  app: z.string().optional(),
  kind: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  /** What the start shows. */
  startAlert: ActivityAlert.optional(),
  version: z.number().int().min(1),
  /** Seconds since 1970. iOS ignores a push with an older one than the last, so it grows with each version. */
  timestamp: z.number().int(),
  /** When the version was written, in milliseconds since 1970. */
  writtenAt: ms,
  contentState: ContentState,
  staleAt: z.string().optional(),
  relevance: z.number().optional(),
  priority: z.enum(["high", "normal"]).optional(),
  sequence: z.number().int().optional(),
  /** `pushed`: the version whose pushes show it. Absent: none yet, so the next version takes it over. */
  alert: ActivityAlert.extend({ pushed: z.number().int().optional() }).optional(),
  createdAt: ms,
  endsAt: ms,
  /** `by`: the notification of the end. `body`: SHA-256 of the request's; absent: it ended at `endsAt`. */
  end: z
    .object({ at: ms, by: NotificationId, body: z.string().optional(), dismissAt: z.string().optional() })
    .optional(),
  /** When the next version may be written, for the limit of versions: the theoretical arrival time of GCRA. */
  nextAt: ms,
});
export type ActivityRecord = z.infer<typeof ActivityRecord>;

export type ActivityKey = { readonly projectId: ProjectId; readonly id: ActivityId };

export const activityKey = ({ projectId, id }: ActivityKey): string => `${projectId}.${id}`;
/** Exists until the activity ends: they are counted. */
export const activeActivityKey = ({ projectId, id }: ActivityKey): string => `active.${projectId}.${id}`;
