import { fromTags, type OutboxEvent, parseTarget, usersOf } from "@herald/contracts";
import { skippedOf } from "../domain/counts.ts";
import type { NotificationState } from "./notification-document.ts";

type Facts = Pick<NotificationState, "_id" | "projectId" | "acceptedAt" | "sendAt" | "tags">;

/** The topics that targets name. */
const topicsOf = (targets: readonly string[]): string[] => {
  const names = targets.flatMap((source) => {
    const parsed = parseTarget(source);
    return "target" in parsed && parsed.target.kind === "topic" ? [parsed.target.name] : [];
  });
  return [...new Set(names)];
};

export const notificationAccepted = (
  { _id, projectId, acceptedAt, sendAt, tags }: Facts,
  targets: readonly string[],
): OutboxEvent => {
  const topics = topicsOf(targets);
  const users = usersOf(targets);
  return {
    id: `${_id}/accepted`,
    event: "NotificationAcceptedV1",
    subject: _id,
    at: acceptedAt,
    data: {
      project_id: projectId,
      notification_id: _id,
      ...fromTags(tags),
      at: acceptedAt.toISOString(),
      ...(sendAt ? { send_at: sendAt.toISOString() } : {}),
      ...(topics.length > 0 ? { topics } : {}),
      ...(users.length > 0 ? { users } : {}),
    },
  };
};

const endings = {
  completed: "NotificationCompletedV1",
  cancelled: "NotificationCancelledV1",
  expired: "NotificationExpiredV1",
} as const;

export const notificationEnded = (
  { _id, projectId, tags }: Pick<Facts, "_id" | "projectId" | "tags">,
  { status, at, tally, failures }: NonNullable<NotificationState["final"]>,
): OutboxEvent => {
  const { skips, ...sums } = tally;
  const counts = { ...sums, skipped: skippedOf(tally) };
  const data = {
    project_id: projectId,
    notification_id: _id,
    ...fromTags(tags),
    at: at.toISOString(),
    counts,
    ...(skips && { skips }),
  };
  return {
    id: `${_id}/${status}`,
    event: endings[status],
    subject: _id,
    at,
    data: status === "completed" ? { ...data, failures } : data,
  };
};
