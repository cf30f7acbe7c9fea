import type { DeviceId, EventData, EventName, OutboxEvent, ProjectId, TopicId } from "@herald/contracts";

/** What every event of one change has in common. `newId` gives the id of a fact, `ce-id`. */
export type Occasion = { readonly projectId: ProjectId; readonly at: Date; readonly newId: () => string };

export type TopicRow = { readonly id: TopicId; readonly name: string };

const event = <Name extends EventName>(
  occasion: Occasion,
  name: Name,
  subject: string,
  data: Omit<EventData<Name>, "project_id" | "at">,
): OutboxEvent => {
  const { projectId, at, newId } = occasion;
  return {
    id: newId(),
    event: name,
    subject,
    at,
    data: { project_id: projectId, ...data, at: at.toISOString() } as unknown as EventData<EventName>,
  };
};

export const deviceRegistered = (
  occasion: Occasion,
  deviceId: DeviceId,
  device: Pick<EventData<"DeviceRegisteredV1">, "platform" | "token_hash">,
): OutboxEvent => event(occasion, "DeviceRegisteredV1", deviceId, { device_id: deviceId, ...device });

export const deviceUpdated = (occasion: Occasion, deviceId: DeviceId, changed: readonly string[]): OutboxEvent =>
  event(occasion, "DeviceUpdatedV1", deviceId, { device_id: deviceId, changed: [...changed] });

export const deviceDeactivated = (
  occasion: Occasion,
  deviceId: DeviceId,
  reason: "unregistered" | "requested",
): OutboxEvent => event(occasion, "DeviceDeactivatedV1", deviceId, { device_id: deviceId, reason });

export const deviceDeleted = (occasion: Occasion, deviceId: DeviceId): OutboxEvent =>
  event(occasion, "DeviceDeletedV1", deviceId, { device_id: deviceId });

export const deviceSubscribed = (occasion: Occasion, deviceId: DeviceId, topic: TopicRow): OutboxEvent =>
  event(occasion, "DeviceSubscribedV1", deviceId, { device_id: deviceId, topic_id: topic.id, topic: topic.name });

export const topicCreated = (occasion: Occasion, topic: TopicRow): OutboxEvent =>
  event(occasion, "TopicCreatedV1", topic.id, { topic_id: topic.id, topic: topic.name });

/** Stands for the end of every subscription to the topic: no event for each device says so too. */
export const topicDeleted = (occasion: Occasion, topic: TopicRow): OutboxEvent =>
  event(occasion, "TopicDeletedV1", topic.id, { topic_id: topic.id, topic: topic.name });

/** Its subject is the project: no id of a user is in a header. */
export const userErased = (occasion: Occasion, userId: string): OutboxEvent =>
  event(occasion, "UserErasedV1", occasion.projectId, { user_id: userId });

/** Stands for the end of all that the project had. */
export const projectDeleted = (occasion: Occasion): OutboxEvent =>
  event(occasion, "ProjectDeletedV1", occasion.projectId, {});

/** What a change of a device tells the world. */
export const eventsOfChange = (
  occasion: Occasion,
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
    ...(updated.length > 0 ? [deviceUpdated(occasion, deviceId, updated)] : []),
    ...(deactivated ? [deviceDeactivated(occasion, deviceId, "requested")] : []),
    ...subscribed.map((topic) => deviceSubscribed(occasion, deviceId, topic)),
  ];
};
