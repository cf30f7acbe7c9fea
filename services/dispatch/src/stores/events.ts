import { randomUUID } from "node:crypto";
import {
  type Author,
  type DeliveryReason,
  type EventData,
  type EventName,
  type OutboxEvent,
  type Recipient,
  userKey,
} from "@herald/contracts";
import { fromTags, topicsOf, usersOf } from "@herald/rules";
import { rootGeneration } from "../domain/batch.ts";
import { type FinalStatus, skippedOf, type Tally } from "../domain/notification-counts.ts";
import type { Settlement, Waiting } from "../domain/settle-row.ts";
import type { UnopenedBy } from "../domain/unopened.ts";
import {
  type BatchFacts,
  type DeliveryDocument,
  ownerOf,
  ownersOf,
  packedAt,
  packedCount,
} from "./delivery-document.ts";
import type { End, NotificationRecord, NotificationState, Paused, StoredApproval } from "./notification-document.ts";
import type { Decision } from "./notification-steps.ts";

type Facts = Pick<NotificationState, "_id" | "projectId" | "acceptedAt" | "sendAt" | "tags">;

const notificationAccepted = (
  { _id, projectId, acceptedAt, sendAt, tags }: Facts,
  { targets, template }: NotificationRecord["content"],
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
      ...(tags && fromTags(tags)),
      at: acceptedAt.toISOString(),
      ...(sendAt ? { send_at: sendAt.toISOString() } : {}),
      ...(topics.length > 0 ? { topics } : {}),
      ...(users.length > 0 ? { users } : {}),
      ...(template && { template }),
    },
  };
};

type Named = Pick<Facts, "_id" | "projectId" | "tags">;

/** An event of a step. By default its id is new each time, because a step may be made twice within a millisecond. */
const stepEvent = <Name extends EventName>(
  { _id, projectId, tags }: Named,
  event: Name,
  at: Date,
  data: Omit<EventData<Name>, "project_id" | "notification_id" | "kind" | "labels" | "at">,
  id: string = randomUUID(),
): OutboxEvent => {
  const facts = { project_id: projectId, notification_id: _id, ...(tags && fromTags(tags)), at: at.toISOString() };
  return {
    id: `${_id}/${id}`,
    event,
    subject: _id,
    at,
    data: { ...facts, ...data } as unknown as EventData<EventName>,
  };
};

/** `sendAt`: when it is sent now; `zone`: `time_zone`. */
export const notificationChanged = (
  notification: Named,
  { at, sendAt, zone }: { readonly at: Date; readonly sendAt: Date; readonly zone: string | undefined },
): OutboxEvent =>
  stepEvent(notification, "NotificationChangedV1", at, {
    send_at: sendAt.toISOString(),
    ...(zone !== undefined && { time_zone: zone }),
  });

export const notificationPaused = (notification: Named, { at, by, reason }: Paused): OutboxEvent =>
  stepEvent(notification, "NotificationPausedV1", at, {
    reason: by === undefined ? "failures" : "requested",
    ...(reason !== undefined && { detail: reason }),
    ...(by && { by }),
  });

export const notificationResumed = (notification: Named, at: Date, by: Author): OutboxEvent =>
  stepEvent(notification, "NotificationResumedV1", at, { by });

/** Of an upload when it is complete, of any other at once. */
export const notificationProposed = (
  notification: Named,
  { devices, limit, sender: by }: StoredApproval,
  at: Date,
): OutboxEvent => {
  const data = { ...(devices !== undefined && { devices }), limit, by };
  return stepEvent(notification, "NotificationProposedV1", at, data, "proposed");
};

export const notificationApproved = (
  notification: Named,
  { at, by, reason }: { readonly at: Date; readonly by: Author; readonly reason?: string | undefined },
): OutboxEvent =>
  stepEvent(notification, "NotificationApprovedV1", at, { ...(reason !== undefined && { detail: reason }), by });

export const notificationRejected = (notification: Named, { at, by, reason }: Decision): OutboxEvent =>
  stepEvent(notification, "NotificationRejectedV1", at, {
    reason: by ? "requested" : "expired",
    ...(reason !== undefined && { detail: reason }),
    ...(by && { by }),
  });

const endings = {
  completed: "NotificationCompletedV1",
  cancelled: "NotificationCancelledV1",
  expired: "NotificationExpiredV1",
} as const;

export const notificationEnded = (
  notification: Named,
  { status, end: { at, tally, failures } }: { readonly status: FinalStatus; readonly end: End },
): OutboxEvent => {
  const { skips, asked: _asked, ...sums } = tally;
  const counts = { ...sums, skipped: skippedOf(tally) };
  const data = { counts, ...(skips && { skips }), ...(status === "completed" && { failures }) };
  return stepEvent(notification, endings[status], at, data, status);
};

/** The id is the same each time, and does not name the user, who may be erased. */
export const notificationUnopened = (notification: Named, by: UnopenedBy, at: Date): OutboxEvent => {
  const { user_id: userId = "", device_id: id = userKey(notification.projectId, userId) } = by;
  return stepEvent(notification, "NotificationUnopenedV1", at, by, `unopened/${id}`);
};

/** What the events of a send need to know of it. */
type Sent = Facts & Pick<NotificationRecord, "approval" | "content" | "status"> & { readonly end?: End | undefined };

/** The events of a send so far, in order, with the same ids each time. `events`: those of its rows. */
export const eventsOfSend = (document: Sent, events: readonly OutboxEvent[] = []): OutboxEvent[] => [
  notificationAccepted(document, document.content),
  ...(document.approval && !document.content.recipients?.upload
    ? [notificationProposed(document, document.approval, document.acceptedAt)]
    : []),
  ...events,
  ...(document.end ? [notificationEnded(document, { status: document.status as FinalStatus, end: document.end })] : []),
];

/** The users of devices as events name them; absent: none has one. */
const namedUsers = (devices: readonly Pick<Recipient, "userId">[]): { readonly users?: (string | null)[] } => {
  const users = devices.map((device) => ownerOf(device) ?? null);
  return users.some((user) => user !== null) ? { users } : {};
};

/** What the events of a row have in common. */
const factsOfEvents = ({ projectId, notificationId, platform, tags, _id }: BatchFacts, at: Date) => ({
  project_id: projectId,
  notification_id: notificationId,
  ...(tags && fromTags(tags)),
  at: at.toISOString(),
  batch_id: _id,
  platform,
});

/** One event for each end of quiet hours. Only of the first row: its children wait for the same ends. */
const delayedEvents = (batch: BatchFacts, { devices }: Pick<Waiting, "devices">, at: Date): OutboxEvent[] => {
  if (batch.generation !== rootGeneration) return [];
  const delayed = Map.groupBy(devices, (device) => device.delayed);
  return [...delayed].flatMap(([end, some]): OutboxEvent[] => {
    if (end === undefined) return [];
    const until = new Date(end).toISOString();
    const reason: DeliveryReason = "quiet-hours";
    const data = { ...factsOfEvents(batch, at), devices: some.map(({ id }) => id), ...namedUsers(some), until, reason };
    const id = `${batch._id}/delayed/${end}`;
    return [{ id, event: "DeliveryDelayedV1", subject: batch.notificationId, at, data }];
  });
};

/** The events of a settled row. Devices that continue in a child have none yet, unless quiet hours delay them. */
export const deliveryEvents = (
  batch: BatchFacts,
  devices: readonly Pick<Recipient, "id" | "userId">[],
  { results, resultOf, unregistered, waiting }: Pick<Settlement, "results" | "resultOf" | "unregistered" | "waiting">,
  at: Date,
): OutboxEvent[] => {
  const accepted: Pick<Recipient, "id" | "userId">[] = [];
  const failures: EventData<"DeliveryFailedV1">["failures"] = [];
  let asked = 0;
  for (const [index, device] of devices.entries()) {
    const result = results[resultOf[index] ?? 0];
    if (result === undefined || result.status === "deferred") continue;
    if (result.status === "accepted") {
      accepted.push(device);
      if (result.asked) asked++;
      continue;
    }
    const { status, reason = "internal" satisfies DeliveryReason, providerReason } = result;
    const userId = ownerOf(device);
    failures.push({
      device_id: device.id,
      ...(userId === undefined ? {} : { user_id: userId }),
      status,
      reason,
      ...(providerReason === undefined ? {} : { provider_reason: providerReason }),
    });
  }
  const { notificationId, _id: batchId } = batch;
  const facts = factsOfEvents(batch, at);
  const events: OutboxEvent[] = [];
  if (accepted.length > 0)
    events.push({
      id: `${batchId}/accepted`,
      event: "DeliveryAcceptedV1",
      subject: notificationId,
      at,
      data: {
        ...facts,
        devices: accepted.map(({ id }) => id),
        ...namedUsers(accepted),
        ...(asked > 0 && { asked }),
      },
    });
  if (failures.length > 0)
    events.push({
      id: `${batchId}/failed`,
      event: "DeliveryFailedV1",
      subject: notificationId,
      at,
      data: {
        ...facts,
        failures,
        unregistered: unregistered.map(({ deviceId, tokenHash, at, reason }) => ({
          device_id: deviceId,
          token_hash: tokenHash,
          at: at.toISOString(),
          ...(reason && { reason }),
        })),
      },
    });
  return waiting ? [...events, ...delayedEvents(batch, waiting, at)] : events;
};

/** Whether a row's events can be rebuilt from its fields. The events of any other row contain more than the row stores. */
export const allAccepted = ({ tally, waiting }: { readonly tally: Tally; readonly waiting?: unknown }): boolean =>
  waiting === undefined && tally.accepted === tally.devices;

/** Rebuilds the events of a final row whose devices were all accepted. Empty for any other row. */
export const acceptedEventsOf = (row: DeliveryDocument): OutboxEvent[] => {
  const { results = [], resultOf, settledAt } = row;
  if (!settledAt || !resultOf || !allAccepted(row)) return [];
  const owners = ownersOf(row);
  const devices = Array.from({ length: packedCount(row.deviceIds) }, (_, index) => ({
    id: packedAt(row.deviceIds, index),
    userId: owners[index],
  }));
  return deliveryEvents(row, devices, { results, resultOf: resultOf.buffer, unregistered: [] }, settledAt);
};
