import {
  type DeviceId,
  type ExpandedV1,
  type NotificationContent,
  type NotificationId,
  type OutboxEvent,
  type ProjectId,
  type SendV1,
  type Tag,
  toTags,
  userKey,
  usersOf,
} from "@herald/contracts";
import { type IndexSpec, indexName, outboxIndex } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Failures, Tally } from "../domain/counts.ts";
import type { FinalStatus } from "../domain/notification-status.ts";
import type { Claim, EmbeddedRow } from "./delivery-document.ts";

/** A notification without its content, which most steps have no use for. */
export type NotificationState = {
  _id: NotificationId;
  projectId: ProjectId;
  acceptedAt: Date;
  sendAt?: Date;
  expiresAt: Date;
  /** Its expansion is to be commanded then. Absent: that has begun. */
  dueAt?: Date;
  /** Its expansion waits for its project's turn, or is under way. Absent: it waits for `dueAt`, is expanded, or needs none. */
  expansion?: "queued" | "running";
  /**
   * What registry partitioned. `at`: when the broker took the end of it, after all of its batches; absent where a send finishes where it
   * starts, and nothing was partitioned. `pages`: as {@link ExpandedV1} says it, to find the batch of a device.
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
  /** An expansion was dead-lettered: no further batch will come. */
  expansionLostAt?: Date;
  /** When the sweep looks at it; absent when it is final, or waits for its turn to be expanded. */
  checkAt?: Date;
  final?: { status: FinalStatus; at: Date; tally: Tally; failures: Failures };
  /**
   * Its `rows` are being sent for this message; while they move to `deliveries`, `open` is false. `slice`: what was taken from a backlog
   * together.
   */
  sending?: Claim & { readonly open: boolean; readonly slice?: string };
  /** A small send in its project's backlog, until its last event is published. */
  queued?: true;
  /** Its kind and labels; absent: none. */
  tags?: Tag[];
};

export type NotificationRecord = NotificationState & { readonly content: NotificationContent };

/** As it is stored. */
export type NotificationDocument = NotificationState & {
  /** JSON: its keys are the caller's, and a database takes not every key. */
  content: string;
  /** `userKey` of the users among its targets; absent: none. */
  userKeys?: string[];
  /** The ledger of a send to few devices that were, or may yet be, settled all at once. Any other's is in `deliveries`. */
  rows?: EmbeddedRow[];
  /** A row names a user. */
  named?: true;
  /** The device of a small send to one, for its timeline. A field of its own: an index of an array cannot be read in order. */
  recipient?: DeviceId;
  /** The devices of a small send to several. */
  recipients?: DeviceId[];
  /** It is expanded by registry. */
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

/** Most notifications end within it; a later one is looked at so often. */
export const checkEveryMs = 60_000;

/** A send as it begins. */
export const newState = (send: SendV1, now: Date): NotificationState => {
  const sendAt = send.sendAt === undefined ? undefined : new Date(send.sendAt);
  const waits = sendAt !== undefined && sendAt > now;
  const tags = toTags(send.content);
  return {
    _id: send.notificationId,
    projectId: send.projectId,
    acceptedAt: new Date(send.acceptedAt),
    ...(sendAt ? { sendAt } : {}),
    expiresAt: new Date(send.expiresAt),
    ...(tags && { tags }),
    ...(waits ? { dueAt: sendAt } : {}),
    checkAt: waits ? sendAt : new Date(now.getTime() + checkEveryMs),
  };
};

export const newDocument = (state: NotificationState, content: NotificationContent): NotificationDocument => {
  const userKeys = usersOf(content.targets).map((userId) => userKey(state.projectId, userId));
  return { ...state, content: JSON.stringify(content), ...(userKeys.length > 0 && { userKeys }) };
};

const listIndex: IndexSpec = { fields: { projectId: 1, _id: 1 }, purpose: "list" };
const statusIndex: IndexSpec = { fields: { projectId: 1, "final.status": 1, _id: 1 }, purpose: "list" };
/** Notifications of a kind or with a label. */
const tagsIndex: IndexSpec = {
  fields: { projectId: 1, tags: 1, _id: 1 },
  purpose: "list",
  partial: { tags: { $exists: true } },
};
const unfinishedIndex: IndexSpec = {
  fields: { checkAt: 1 },
  purpose: "unfinished",
  partial: { checkAt: { $exists: true } },
};

/** A project's expansions: what is under way, and what waits, oldest first. */
const expansionsIndex: IndexSpec = {
  fields: { projectId: 1, expansion: 1, _id: 1 },
  purpose: "expansions",
  partial: { expansion: { $exists: true } },
};

/** A project's backlog of small sends, oldest first. */
const backlogIndex: IndexSpec = {
  fields: { projectId: 1, queued: 1, _id: 1 },
  purpose: "backlog",
  partial: { queued: { $exists: true } },
};

const endedIndex: IndexSpec = {
  fields: { "final.at": 1 },
  purpose: "retention",
  partial: { final: { $exists: true } },
};

/** A user's notifications, and what an erasure rewrites. */
const usersIndex: IndexSpec = {
  fields: { projectId: 1, userKeys: 1, _id: 1 },
  purpose: "users",
  partial: { userKeys: { $exists: true } },
};

/** For the erasure of a user, which looks at all rows of a project that name any. */
const namedIndex: IndexSpec = {
  fields: { projectId: 1, _id: 1 },
  purpose: "named",
  partial: { named: { $exists: true } },
};

/** Timelines of devices: small sends by their recipients, and large ones, whose batches say who got them. */
const recipientIndex: IndexSpec = {
  fields: { projectId: 1, recipient: 1, _id: 1 },
  purpose: "timeline",
  partial: { recipient: { $exists: true } },
};
const recipientsIndex: IndexSpec = {
  fields: { projectId: 1, recipients: 1, _id: 1 },
  purpose: "timeline",
  partial: { recipients: { $exists: true } },
};
const largeIndex: IndexSpec = {
  fields: { projectId: 1, _id: 1 },
  purpose: "large",
  partial: { large: { $exists: true } },
};

export const notificationIndexes = [
  listIndex,
  statusIndex,
  tagsIndex,
  unfinishedIndex,
  expansionsIndex,
  backlogIndex,
  endedIndex,
  usersIndex,
  namedIndex,
  recipientIndex,
  recipientsIndex,
  largeIndex,
  outboxIndex,
];

/** Names of the indexes, for `hint`. */
export const notificationHints = {
  list: indexName(listIndex),
  status: indexName(statusIndex),
  tags: indexName(tagsIndex),
  unfinished: indexName(unfinishedIndex),
  expansions: indexName(expansionsIndex),
  backlog: indexName(backlogIndex),
  ended: indexName(endedIndex),
  users: indexName(usersIndex),
  named: indexName(namedIndex),
  recipient: indexName(recipientIndex),
  recipients: indexName(recipientsIndex),
  large: indexName(largeIndex),
} as const;

export const notificationCollection = (db: Db): Collection<NotificationDocument> => db.collection("notifications");
