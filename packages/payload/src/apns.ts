import { type NotificationContent, type PushType, topicEndings } from "@herald/contracts";
import { type BodyOf, bodyOf, compact, override, type PushOrigin, type Words } from "./render.ts";

/** Maximum bytes of an APNs payload. */
export const apnsMaxBytes = 4096;
const voipMaxBytes = 5120;

/** The same for the push type of a notification. */
export const apnsMaxBytesOf = ({ push_type }: Pick<NotificationContent, "push_type">): number =>
  push_type === "voip" ? voipMaxBytes : apnsMaxBytes;

/** One notification as APNs gets it. */
export type ApnsRendering = {
  /** Header `apns-push-type`. */
  readonly pushType: "alert" | "background" | PushType;
  /** What follows the bundle id in the header `apns-topic`. */
  readonly topicEnding: string;
  /** Header `apns-priority`: 10 delivers at once, 5 saves battery; background pushes may only use 5. */
  readonly priority: 10 | 5;
  readonly body: BodyOf;
};

/** A critical alert plays its sound even if the device is muted. Apple wants such a sound as an object. */
const soundOf = ({ sound, urgency }: NotificationContent): unknown =>
  urgency === "critical" ? { critical: 1, name: sound ?? "default", volume: 1 } : sound;

const aps = (content: NotificationContent, words: Words): Record<string, unknown> => {
  const { push_type: type } = content;
  if (type !== undefined) return type === "widgets" || type === "controls" ? { "content-changed": true } : {};
  if (content.silent) return { "content-available": 1 };
  return compact({
    alert: compact({ title: words.title, body: words.body }),
    badge: content.badge,
    sound: soundOf(content),
    category: content.category,
    "thread-id": content.thread,
    "interruption-level": content.urgency,
    "relevance-score": content.relevance,
    // The app's notification service extension fetches an image, and only runs for mutable content.
    "mutable-content": words.image === undefined ? undefined : 1,
  });
};

export const apnsPushType = ({ silent, push_type }: NotificationContent): ApnsRendering["pushType"] =>
  push_type ?? (silent ? "background" : "alert");

export const apnsPriority = ({ silent, priority }: NotificationContent): ApnsRendering["priority"] =>
  silent || priority === "normal" ? 5 : 10;

/** The payload without the ids of notification and project. */
export const apnsPayload = (content: NotificationContent, words: Words): Record<string, unknown> =>
  override(
    compact({ aps: aps(content, words), link_to: words.link_to, image: words.image, data: content.data }),
    content.ios,
  );

/** Renders a notification for APNs. */
export const renderApns = (content: NotificationContent, origin: PushOrigin): ApnsRendering => ({
  pushType: apnsPushType(content),
  topicEnding: content.push_type === undefined ? "" : topicEndings[content.push_type],
  priority: apnsPriority(content),
  body: bodyOf(content, origin, (words) => apnsPayload(content, words)),
});
