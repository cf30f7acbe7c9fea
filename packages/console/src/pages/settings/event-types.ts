import type { EventType } from "@herald/client";

/** Every event type once: a type that the client does not know does not compile, nor does a missing type. */
const all: Readonly<Record<EventType, true>> = {
  "io.herald.device.registered.v1": true,
  "io.herald.device.updated.v1": true,
  "io.herald.device.deactivated.v1": true,
  "io.herald.device.deleted.v1": true,
  "io.herald.device.subscribed.v1": true,
  "io.herald.device.unsubscribed.v1": true,
  "io.herald.topic.created.v1": true,
  "io.herald.topic.deleted.v1": true,
  "io.herald.notification.accepted.v1": true,
  "io.herald.notification.completed.v1": true,
  "io.herald.notification.cancelled.v1": true,
  "io.herald.notification.expired.v1": true,
  "io.herald.notification.opened.v1": true,
  "io.herald.delivery.accepted.v1": true,
  "io.herald.delivery.failed.v1": true,
  "io.herald.template.published.v1": true,
  "io.herald.provider.paused.v1": true,
  "io.herald.provider.resumed.v1": true,
  "io.herald.webhook.disabled.v1": true,
  "io.herald.user.erased.v1": true,
  "io.herald.project.deleted.v1": true,
};

export const eventTypes = Object.keys(all) as EventType[];

/** For display: `notification.opened`. */
export const shortName = (type: string): string => type.replace("io.herald.", "").replace(".v1", "");
