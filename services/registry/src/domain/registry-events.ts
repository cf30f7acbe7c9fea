import { randomUUID } from "node:crypto";
import type { DeviceId, EventData, EventName, OutboxEvent, ProjectId, TopicId } from "@herald/contracts";

/** The fields that all events of one change share. `newId` makes event ids. */
export type EventContext = { readonly projectId: ProjectId; readonly at: Date; readonly newId: () => string };

export const eventContext = (projectId: ProjectId, at: Date): EventContext => ({ projectId, at, newId: randomUUID });

export type TopicRow = { readonly id: TopicId; readonly name: string };

/** `subject`: the device or topic of the event; for other events the project, so that headers contain no user id. */
export const registryEvent = <Name extends EventName>(
  { projectId, at, newId }: EventContext,
  name: Name,
  subject: string,
  data: Omit<EventData<Name>, "project_id" | "at">,
): OutboxEvent => ({
  id: newId(),
  event: name,
  subject,
  at,
  data: { project_id: projectId, ...data, at: at.toISOString() } as unknown as EventData<EventName>,
});

/**
 * Fields of an update pipeline that changes many devices and adds an event to the outbox of each. One update for all devices takes half
 * as long as one write per device.
 */
export const eventOfEach = <Name extends EventName>(
  { projectId, at, newId }: EventContext,
  name: Name,
  data: Omit<EventData<Name>, "project_id" | "device_id" | "at">,
) => {
  const same = Object.entries({ project_id: projectId, ...data, at: at.toISOString() });
  const event = {
    id: { $concat: [{ $literal: `${newId()}/` }, "$_id"] },
    event: { $literal: name },
    subject: "$_id",
    at,
    data: { device_id: "$_id", ...Object.fromEntries(same.map(([field, value]) => [field, { $literal: value }])) },
  };
  return {
    version: { $add: ["$version", 1] },
    updatedAt: at,
    outbox: { $concatArrays: [{ $ifNull: ["$outbox", []] }, [event]] },
  };
};

export const deviceSubscribed = (context: EventContext, id: DeviceId, topic: TopicRow): OutboxEvent =>
  registryEvent(context, "DeviceSubscribedV1", id, { device_id: id, topic_id: topic.id, topic: topic.name });

export const eventsOfChange = (
  context: EventContext,
  deviceId: DeviceId,
  change: {
    readonly changed: readonly string[];
    readonly status: "active" | "inactive";
    readonly subscribed: readonly TopicRow[];
  },
): OutboxEvent[] => {
  const { changed, status, subscribed } = change;
  const deactivated = changed.includes("status") && status === "inactive";
  const updated = deactivated ? changed.filter((field) => field !== "status") : changed;
  return [
    ...(updated.length > 0
      ? [registryEvent(context, "DeviceUpdatedV1", deviceId, { device_id: deviceId, changed: [...updated] })]
      : []),
    ...(deactivated
      ? [registryEvent(context, "DeviceDeactivatedV1", deviceId, { device_id: deviceId, reason: "requested" })]
      : []),
    ...subscribed.map((topic) => deviceSubscribed(context, deviceId, topic)),
  ];
};
