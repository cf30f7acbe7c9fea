import { hash } from "node:crypto";
import type { NotificationContent } from "@herald/contracts";
import { kitFields } from "./push-form.ts";
import {
  type BodyOf,
  bodyOf,
  collapseIdOf,
  compact,
  override,
  type PushForm,
  type PushOrigin,
  plainForm,
  type Words,
} from "./render.ts";

/** Maximum plaintext in bytes that fits an encrypted record of 4,096 bytes (RFC 8291). */
export const webPushMaxBytes = 3993;

/** One notification as the service worker reads it after decryption. */
export type WebPushRendering = {
  /** Header `Urgency` (RFC 8030, 5.3). */
  readonly urgency: "high" | "normal" | "low";
  readonly body: BodyOf;
};

const urgencies = { passive: "low", active: "normal", "time-sensitive": "high", critical: "high" } as const;

export const webPushUrgency = ({ silent, priority, urgency }: NotificationContent): WebPushRendering["urgency"] => {
  if (silent) return "normal";
  if (urgency !== undefined) return urgencies[urgency];
  return priority === "normal" ? "normal" : "high";
};

/**
 * A topic has at most 32 characters of base64url (RFC 8030, 5.4). Apple decodes it, and no base64url has 1, 5, 9 … characters. Any other id
 * is hashed, so that a push with the same id still replaces.
 */
export const webPushTopic = (collapseId: string): string =>
  /^[A-Za-z0-9_-]{1,32}$/.test(collapseId) && collapseId.length % 4 !== 1
    ? collapseId
    : hash("sha256", collapseId, "base64url").slice(0, 32);

/** The payload without the ids of notification and project. */
export const webPushPayload = (
  content: NotificationContent,
  origin: PushOrigin,
  words: Words,
  form: PushForm = plainForm,
): Record<string, unknown> => {
  const own = form === plainForm ? {} : kitFields(content, words, form);
  const notification = content.silent
    ? undefined
    : compact({
        title: words.title,
        body: words.body,
        image: words.image,
        tag: collapseIdOf(content, origin),
        badge: content.badge_image,
        icon: content.icon,
        sound: content.sound,
        category: content.category,
        actions: own.buttons?.map(({ id, title }) => ({ action: id, title })),
      });
  // Declarative Web Push calls the number `app_badge`: a notification's own `badge` is an image.
  const fields = { notification, app_badge: content.badge, link_to: words.link_to, data: content.data };
  return { ...override(compact(fields), content, words, content.web), ...own };
};

/** Renders a notification for Web Push as JSON, which is then encrypted for each subscription. */
export const renderWebPush = (
  content: NotificationContent,
  origin: PushOrigin,
  form: PushForm = plainForm,
): WebPushRendering => ({
  urgency: webPushUrgency(content),
  body: bodyOf(content, origin, (words) => webPushPayload(content, origin, words, form)),
});
