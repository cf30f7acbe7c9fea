import { hash } from "node:crypto";
import { type NotificationContent, type PushType, topicEndings } from "@herald/contracts";
import { activityBody } from "./live-activity.ts";
import { kitFields } from "./push-form.ts";
import {
  type BodyOf,
  bodyOf,
  compact,
  override,
  type PushForm,
  type PushOrigin,
  plainForm,
  type Words,
} from "./render.ts";

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

/**
 * The category of the app's kit, which its extension registers before it shows the push: iOS takes buttons, and reports a dismissal, by
 * category. Equal buttons have one category, because an app has a limited number.
 */
const kitCategory = (buttons: unknown): string =>
  `herald.${hash("sha256", JSON.stringify(buttons ?? []), "base64url").slice(0, 16)}`;

const aps = (content: NotificationContent, words: Words, form: PushForm): Record<string, unknown> => {
  const { push_type: type } = content;
  if (type !== undefined) return type === "widgets" || type === "controls" ? { "content-changed": true } : {};
  if (content.silent) return { "content-available": 1 };
  const isForKit = form !== plainForm;
  return compact({
    alert: compact({ title: words.title, body: words.body }),
    badge: content.badge,
    sound: soundOf(content),
    category: content.category ?? (isForKit ? kitCategory(kitFields(content, words, form).buttons) : undefined),
    "thread-id": content.thread,
    "interruption-level": content.urgency,
    "relevance-score": content.relevance,
    // The app's notification service extension fetches an image and reports receipts, and only runs for mutable content.
    "mutable-content": words.image === undefined && !isForKit ? undefined : 1,
  });
};

export const apnsPushType = ({ silent, push_type }: NotificationContent): ApnsRendering["pushType"] =>
  push_type ?? (silent ? "background" : "alert");

export const apnsPriority = ({ silent, priority }: NotificationContent): ApnsRendering["priority"] =>
  silent || priority === "normal" ? 5 : 10;

/** The payload without the ids of notification and project. */
export const apnsPayload = (content: NotificationContent, words: Words, form: PushForm): Record<string, unknown> => ({
  ...override(
    compact({ aps: aps(content, words, form), link_to: words.link_to, image: words.image, data: content.data }),
    content,
    words,
    content.ios,
  ),
  ...(form !== plainForm && kitFields(content, words, form)),
});

/** Renders a notification for APNs. */
export const renderApns = (
  content: NotificationContent,
  origin: PushOrigin,
  form: PushForm = plainForm,
): ApnsRendering => ({
  pushType: apnsPushType(content),
  topicEnding: content.push_type === undefined ? "" : topicEndings[content.push_type],
  priority: apnsPriority(content),
  body: content.activity
    ? activityBody(content.activity, origin)
    : bodyOf(content, origin, (words) => apnsPayload(content, words, form)),
});
