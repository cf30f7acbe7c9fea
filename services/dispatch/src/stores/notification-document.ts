import type { NotificationContent, NotificationId, OutboxEvent, ProjectId } from "@herald/contracts";
import { type IndexSpec, indexName, outboxIndex } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Failures, Tally } from "../domain/counts.ts";
import type { FinalStatus } from "../domain/notification-status.ts";

/** A notification without its content, which most steps have no use for. */
export type NotificationState = {
  _id: NotificationId;
  projectId: ProjectId;
  acceptedAt: Date;
  sendAt?: Date;
  expiresAt: Date;
  /** Its expansion is to be commanded then. Absent: that has begun. */
  dueAt?: Date;
  /** What registry dealt. */
  expanded?: { batches: number; devices: number; unmatched: string[] };
  cancelledAt?: Date;
  /** The send was dead-lettered: its batches are counted as failed, and nothing is sent. */
  abandonedAt?: Date;
  /** An expansion was dead-lettered: no further batch will come. */
  expansionLostAt?: Date;
  /** When the sweep looks at it; absent when it is final. */
  checkAt?: Date;
  final?: { status: FinalStatus; at: Date; tally: Tally; failures: Failures };
};

export type NotificationRecord = NotificationState & { readonly content: NotificationContent };

/** As it is stored. */
export type NotificationDocument = NotificationState & {
  /** JSON: its keys are the caller's, and a database takes not every key. */
  content: string;
  /** `userKey` of the users among its targets; absent: none. */
  userKeys?: string[];
  outbox?: OutboxEvent[];
};

/** One as it was just written: the events that it carries since are to be published. */
export type Told = Pick<NotificationDocument, "_id" | "projectId" | "outbox">;

export const toRecord = ({ outbox: _, userKeys: __, content, ...state }: NotificationDocument): NotificationRecord => ({
  ...state,
  content: JSON.parse(content),
});

const listIndex: IndexSpec = { fields: { projectId: 1, _id: 1 }, purpose: "list" };
const unfinishedIndex: IndexSpec = {
  fields: { checkAt: 1 },
  purpose: "unfinished",
  partial: { checkAt: { $exists: true } },
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

export const notificationIndexes = [listIndex, unfinishedIndex, endedIndex, usersIndex, outboxIndex];

/** Names of the indexes, for `hint`. */
export const notificationHints = {
  list: indexName(listIndex),
  unfinished: indexName(unfinishedIndex),
  ended: indexName(endedIndex),
  users: indexName(usersIndex),
} as const;

export const notificationCollection = (db: Db): Collection<NotificationDocument> => db.collection("notifications");
