import {
  type DeviceId,
  type ExpandedV1,
  firstNotificationId,
  kindTag,
  type ListRequest,
  labelFilterTag,
  type NotificationContent,
  type NotificationFilter,
  type NotificationId,
  type OutboxEvent,
  type PageOf,
  type ProjectId,
  type SendV1,
  type Tag,
  toTags,
  userKey,
  usersOf,
} from "@herald/contracts";
import { type Counts, findPage, having, type IndexSpec, indexNames, mapPage, outboxIndex } from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { Failures, FinalStatus, Tally } from "../domain/notification-counts.ts";
import type { Claim, EmbeddedRow } from "./delivery-document.ts";

/** A notification without its content, which few steps need. */
export type NotificationState = {
  _id: NotificationId;
  projectId: ProjectId;
  acceptedAt: Date;
  sendAt?: Date;
  expiresAt: Date;
  /** When its expansion is due. Absent: the expansion has been queued or commanded. */
  dueAt?: Date;
  /** Whether its expansion waits for its project's turn or is running. Absent: it waits for `dueAt`, is expanded, or needs none. */
  expansion?: "queued" | "running";
  /**
   * The result of the expansion. `at`: when the broker stored the end of the expansion, which follows all batches; absent for a small
   * send, which registry does not partition. `pages`: from {@link ExpandedV1}, to find the batch of a device.
   */
  expanded?: {
    batches: number;
    devices: number;
    unmatched: string[];
    at?: Date;
    pages?: ExpandedV1["pages"];
  };
  cancelledAt?: Date;
  /** The send was dead-lettered: its batches are counted as failed, and nothing is sent. */
  abandonedAt?: Date;
  /** An expansion was dead-lettered: registry will publish no further batch. */
  expansionLostAt?: Date;
  /** When the sweep checks it; absent when it is final, or waits for its turn to be expanded. */
  checkAt?: Date;
  final?: { status: FinalStatus; at: Date; tally: Tally; failures: Failures };
  /**
   * The message for which its `rows` are being sent. `open` is false while the rows move to `deliveries`. `slice`: identifies sends that
   * one call claimed from a backlog.
   */
  sending?: Claim & { readonly open: boolean; readonly slice?: string };
  /** A small send in its project's backlog, until its last event is published. */
  queued?: true;
  /** Its kind and labels; absent: none. */
  tags?: Tag[];
};

export type NotificationRecord = NotificationState & { readonly content: NotificationContent };

/** A notification as stored. */
export type NotificationDocument = NotificationState & {
  /** JSON, because callers choose the keys, and a database does not accept every key. */
  content: string;
  /** `userKey` of the users among its targets; absent: none. */
  userKeys?: string[];
  /** The ledger of a small send, unless it had to move to `deliveries`, where the ledgers of all other sends are. */
  rows?: EmbeddedRow[];
  /** A row names a user. */
  named?: true;
  /** The only device of a small send, for its timeline. Not in `recipients`, because an index on an array cannot be read in order. */
  recipient?: DeviceId;
  /** The devices of a small send to several. */
  recipients?: DeviceId[];
  /** Registry expands it. */
  large?: true;
  outbox?: OutboxEvent[];
};

/** A notification that was just written, with the events to publish. */
export type OutboxCarrier = Pick<NotificationDocument, "_id" | "projectId" | "outbox">;

export const toRecord = ({
  outbox: _,
  userKeys: __,
  rows: ___,
  named: ____,
  recipient: _____,
  recipients: ______,
  large: _______,
  content,
  ...state
}: NotificationDocument): NotificationRecord => ({ ...state, content: JSON.parse(content) });

/** Most notifications end within this time; the sweep checks the others at this interval. */
export const checkEveryMs = 60_000;

/** The initial state of a send's notification, without the time of its first check. */
export const newState = (send: SendV1, now: Date): NotificationState => {
  const sendAt = send.sendAt === undefined ? undefined : new Date(send.sendAt);
  const tags = toTags(send.content);
  return {
    _id: send.notificationId,
    projectId: send.projectId,
    acceptedAt: new Date(send.acceptedAt),
    ...(sendAt ? { sendAt } : {}),
    expiresAt: new Date(send.expiresAt),
    ...(tags && { tags }),
    ...(sendAt && sendAt > now ? { dueAt: sendAt } : {}),
  };
};

export const newDocument = (state: NotificationState, content: NotificationContent): NotificationDocument => {
  const userKeys = usersOf(content.targets).map((userId) => userKey(state.projectId, userId));
  return { ...state, content: JSON.stringify(content), ...(userKeys.length > 0 && { userKeys }) };
};

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  status: { fields: { projectId: 1, "final.status": 1, _id: 1 }, purpose: "list" },
  /** Notifications of a kind or with a label. */
  tags: { fields: { projectId: 1, tags: 1, _id: 1 }, purpose: "list", partial: having("tags") },
  unfinished: { fields: { checkAt: 1 }, purpose: "unfinished", partial: having("checkAt") },
  /** A project's running and queued expansions, oldest first. */
  expansions: { fields: { projectId: 1, expansion: 1, _id: 1 }, purpose: "expansions", partial: having("expansion") },
  /** A project's backlog of small sends, oldest first. */
  backlog: { fields: { projectId: 1, queued: 1, _id: 1 }, purpose: "backlog", partial: having("queued") },
  /** A user's notifications, for lists and for erasure. */
  users: { fields: { projectId: 1, userKeys: 1, _id: 1 }, purpose: "users", partial: having("userKeys") },
  /** For the erasure of a user, which reads all of a project's notifications with embedded rows that name users. */
  named: { fields: { projectId: 1, _id: 1 }, purpose: "named", partial: having("named") },
  /** Device timelines find small sends by recipient, and large sends through their batches. */
  recipient: { fields: { projectId: 1, recipient: 1, _id: 1 }, purpose: "timeline", partial: having("recipient") },
  recipients: { fields: { projectId: 1, recipients: 1, _id: 1 }, purpose: "timeline", partial: having("recipients") },
  large: { fields: { projectId: 1, _id: 1 }, purpose: "large", partial: having("large") },
} as const satisfies Record<string, IndexSpec>;

export const notificationIndexes: readonly IndexSpec[] = [...Object.values(indexes), outboxIndex];

/** Names of the indexes, for `hint`. */
export const notificationHints = indexNames(indexes);

export const notificationCollection = (db: Db): Collection<NotificationDocument> => db.collection("notifications");

/** Finds the first project, in order of their ids, whose id is greater than the given one and that has a notification with a field. */
export const findProjectAfter =
  (db: Db, field: "queued" | "expansion", hint: string) =>
  async (projectId: string): Promise<ProjectId | undefined> => {
    const filter = { projectId: { $gt: projectId as ProjectId }, [field]: { $exists: true } };
    const options = { hint, projection: { projectId: 1 }, sort: { projectId: 1 } } as const;
    return (await notificationCollection(db).findOne(filter, options))?.projectId;
  };

type Status = NonNullable<NotificationFilter["status"]>;

const absent = { $exists: false } as const;
const unfinished = { "final.status": null, cancelledAt: absent } as const;

/** Filters for the documents shown with a status: `currentStatus` until the notification ends, `final.status` after that. */
const withStatus: { readonly [Name in Status]: Filter<NotificationDocument> } = {
  scheduled: { ...unfinished, dueAt: { $exists: true } },
  accepted: { ...unfinished, dueAt: absent, expansion: "queued" },
  sending: { ...unfinished, dueAt: absent, expansion: { $ne: "queued" } },
  completed: { "final.status": "completed" },
  expired: { "final.status": "expired" },
  // A notification cancelled while it was being sent is shown as cancelled before its counts are final.
  cancelled: {
    "final.status": { $in: ["cancelled", null] },
    $or: [{ "final.status": "cancelled" }, { cancelledAt: { $exists: true } }],
  } as Filter<NotificationDocument>,
};

/** `userId`: only notifications with this user as a target. */
type Wanted = NotificationFilter & { readonly userId?: string | undefined };

/** A page of a project's notifications that match all filters. */
export const listNotifications =
  (notifications: Collection<NotificationDocument>, counts: Counts) =>
  async (
    projectId: ProjectId,
    { status, userId, kind, label }: Wanted,
    request: ListRequest,
  ): Promise<PageOf<NotificationRecord>> => {
    const tags = [
      ...(label === undefined ? [] : [labelFilterTag(label)]),
      ...(kind === undefined ? [] : [kindTag(kind)]),
    ];
    const filter = {
      projectId,
      ...(status !== undefined && withStatus[status]),
      ...(userId !== undefined && { userKeys: userKey(projectId, userId) }),
      // MongoDB uses a partial index only for a query that requires the field to exist.
      ...(tags.length > 0 && { tags: { $exists: true, $all: tags } }),
    } as Filter<NotificationDocument>;
    const byTag = tags.length > 0 ? notificationHints.tags : undefined;
    const byStatus = status === undefined ? undefined : notificationHints.status;
    const hint = userId === undefined ? (byTag ?? byStatus ?? notificationHints.list) : notificationHints.users;
    const options = { filter, hint, firstId: firstNotificationId, request, counts };
    return mapPage(await findPage(notifications, options), toRecord);
  };
