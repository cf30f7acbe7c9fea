import { hash } from "node:crypto";
import type { NotificationContent } from "@herald/contracts";
import { perLocalization, type Words } from "./localize.ts";
import { collapseIdOf, compact, type Origin, override, type Template, withOpenToken } from "./render.ts";

/** The most plaintext that fits an encrypted record of 4,096 bytes (RFC 8291). */
export const webPushMaxBytes = 3993;

/** One notification as the service worker reads it after decryption. */
export type WebPushRendering = {
  readonly urgency: "high" | "normal";
  readonly body: (openToken: string, locale?: string) => string;
};

export const webPushUrgency = ({ silent, priority }: NotificationContent): WebPushRendering["urgency"] =>
  silent || priority === "normal" ? "normal" : "high";

/** A topic has at most 32 characters of base64url; any other id is hashed, so that the same id still replaces. */
export const webPushTopic = (collapseId: string): string =>
  /^[A-Za-z0-9_-]{1,32}$/.test(collapseId) ? collapseId : hash("sha256", collapseId, "base64url").slice(0, 32);

/** The payload without what names the notification. */
export const webPushPayload = (content: NotificationContent, origin: Origin, words: Words): Record<string, unknown> => {
  const notification = content.silent
    ? undefined
    : compact({
        title: words.title,
        body: words.body,
        image: words.image,
        tag: collapseIdOf(content, origin),
        badge: content.badge_image,
        sound: content.sound,
        category: content.category,
      });
  // Its number has the name that Declarative Web Push gives it: a notification's own `badge` is an image.
  const own = { notification, app_badge: content.badge, link_to: words.link_to, data: content.data };
  return override(compact(own), content.web);
};

const template = (content: NotificationContent, origin: Origin, words: Words): Template => {
  const rendered = webPushPayload(content, origin, words);
  return withOpenToken({ ...rendered, notification_id: origin.notificationId, project_id: origin.projectId });
};

/** Renders a notification for Web Push: JSON, to be encrypted for each subscription. */
export const renderWebPush = (content: NotificationContent, origin: Origin): WebPushRendering => {
  const templateFor = perLocalization(content, (words) => template(content, origin, words));
  return {
    urgency: webPushUrgency(content),
    body: (openToken, locale) => {
      const { head, tail } = templateFor(locale);
      return head + openToken + tail;
    },
  };
};
