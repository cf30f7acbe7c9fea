import {
  type DataOf,
  type NotificationAcceptedV1,
  type NotificationId,
  type ProjectId,
  userKey,
} from "@herald/contracts";

/** What statistics must know of a notification that its id does not say. */
export type Notice = {
  readonly _id: NotificationId;
  readonly projectId: ProjectId;
  readonly topics: readonly string[];
  /** `userKey` of the users among its targets; absent: none. */
  readonly userKeys?: readonly string[];
  /** When sending begins. */
  readonly at: Date;
  readonly sendAt?: Date;
};

/** Undefined for one without topics, users and `send_at`: its id says all. */
export const noticeOf = ({
  project_id: projectId,
  notification_id: notificationId,
  at,
  send_at: sendAt,
  topics = [],
  users = [],
}: DataOf<typeof NotificationAcceptedV1>): Notice | undefined => {
  if (topics.length === 0 && users.length === 0 && sendAt === undefined) return undefined;
  return {
    _id: notificationId,
    projectId,
    topics,
    ...(users.length > 0 && { userKeys: users.map((userId) => userKey(projectId, userId)) }),
    at: new Date(sendAt ?? at),
    ...(sendAt === undefined ? {} : { sendAt: new Date(sendAt) }),
  };
};
