import {
  type DataOf,
  type NotificationAcceptedV1,
  type NotificationId,
  type ProjectId,
  userKey,
} from "@herald/contracts";

/** What statistics need to know of a notification beyond its id. */
export type NotificationFacts = {
  readonly _id: NotificationId;
  readonly projectId: ProjectId;
  readonly topics: readonly string[];
  /** `userKey` of the users among its targets; absent: none. */
  readonly userKeys?: readonly string[];
  /** When sending begins. */
  readonly at: Date;
  readonly sendAt?: Date;
};

/** Undefined for a notification without topics, users and `send_at`. */
export const notificationFactsOf = (data: DataOf<typeof NotificationAcceptedV1>): NotificationFacts | undefined => {
  const { project_id: projectId, notification_id: notificationId, at, send_at: sendAt, topics = [], users = [] } = data;
  if (topics.length === 0 && users.length === 0 && sendAt === undefined) return undefined;
  return {
    _id: notificationId,
    projectId,
    topics,
    ...(users.length > 0 && { userKeys: users.map((userId) => userKey(projectId, userId)) }),
    at: new Date(sendAt ?? at),
    ...(sendAt !== undefined && { sendAt: new Date(sendAt) }),
  };
};
