import { randomUUID } from "node:crypto";
import type {
  DeviceId,
  EventData,
  EventName,
  InactiveReason,
  OutboxEvent,
  ProjectId,
  TopicId,
} from "@herald/contracts";

/** What the events of one change have in common. `newId` makes event ids. */
export type EventContext = { readonly projectId: ProjectId; readonly at: Date; readonly newId: () => string };

export const eventContext = (projectId: ProjectId, at: Date): EventContext => ({ projectId, at, newId: randomUUID });

export type TopicRow = { readonly id: TopicId; readonly name: string };

const event = <Name extends EventName>(
  context: EventContext,
  name: Name,
  subject: string,
  data: Omit<EventData<Name>, "project_id" | "at">,
): OutboxEvent => {
  const { projectId, at, newId } = context;
  return {
    id: newId(),
    event: name,
    subject,
    at,
    data: { project_id: projectId, ...data, at: at.toISOString() } as unknown as EventData<EventName>,
  };
};

export const deviceRegistered = (
  context: EventContext,
  deviceId: DeviceId,
  device: Pick<EventData<"DeviceRegisteredV1">, "platform" | "token_hash">,
): OutboxEvent => event(context, "DeviceRegisteredV1", deviceId, { device_id: deviceId, ...device });

export const deviceUpdated = (context: EventContext, deviceId: DeviceId, changed: readonly string[]): OutboxEvent =>
  event(context, "DeviceUpdatedV1", deviceId, { device_id: deviceId, changed: [...changed] });

export const deviceDeactivated = (context: EventContext, deviceId: DeviceId, reason: InactiveReason): OutboxEvent =>
  event(context, "DeviceDeactivatedV1", deviceId, { device_id: deviceId, reason });

export const deviceDeleted = (context: EventContext, deviceId: DeviceId): OutboxEvent =>
  event(context, "DeviceDeletedV1", deviceId, { device_id: deviceId });

export const deviceSubscribed = (context: EventContext, deviceId: DeviceId, topic: TopicRow): OutboxEvent =>
  event(context, "DeviceSubscribedV1", deviceId, { device_id: deviceId, topic_id: topic.id, topic: topic.name });

export const topicCreated = (context: EventContext, topic: TopicRow): OutboxEvent =>
  event(context, "TopicCreatedV1", topic.id, { topic_id: topic.id, topic: topic.name });

/** Also ends every subscription to the topic; devices get no events of their own. */
export const topicDeleted = (context: EventContext, topic: TopicRow): OutboxEvent =>
  event(context, "TopicDeletedV1", topic.id, { topic_id: topic.id, topic: topic.name });

/** Its subject is the project, so that headers contain no user id. */
export const userErased = (context: EventContext, userId: string): OutboxEvent =>
  event(context, "UserErasedV1", context.projectId, { user_id: userId });

/** Also ends everything that the project had. */
export const projectDeleted = (context: EventContext): OutboxEvent =>
  event(context, "ProjectDeletedV1", context.projectId, {});

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
    ...(updated.length > 0 ? [deviceUpdated(context, deviceId, updated)] : []),
    ...(deactivated ? [deviceDeactivated(context, deviceId, "requested")] : []),
    ...subscribed.map((topic) => deviceSubscribed(context, deviceId, topic)),
  ];
};
