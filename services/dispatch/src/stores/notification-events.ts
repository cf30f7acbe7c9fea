import type { OutboxEvent } from "@herald/contracts";
import type { NotificationState } from "./notification-document.ts";

type Facts = Pick<NotificationState, "_id" | "projectId" | "acceptedAt" | "sendAt">;

export const notificationAccepted = ({ _id, projectId, acceptedAt, sendAt }: Facts): OutboxEvent => ({
  id: `${_id}/accepted`,
  event: "NotificationAcceptedV1",
  subject: _id,
  at: acceptedAt,
  data: {
    projectId,
    notificationId: _id,
    at: acceptedAt.toISOString(),
    ...(sendAt ? { sendAt: sendAt.toISOString() } : {}),
  },
});

const endings = {
  completed: "NotificationCompletedV1",
  cancelled: "NotificationCancelledV1",
  expired: "NotificationExpiredV1",
} as const;

export const notificationEnded = (
  { _id, projectId }: Facts,
  { status, at, tally, failures }: NonNullable<NotificationState["final"]>,
): OutboxEvent => {
  const data = { projectId, notificationId: _id, at: at.toISOString(), counts: tally };
  return {
    id: `${_id}/${status}`,
    event: endings[status],
    subject: _id,
    at,
    data: status === "completed" ? { ...data, failures } : data,
  };
};
