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

const template = (content: NotificationContent, origin: Origin, words: Words): Template => {
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
  const rendered = override(compact(own), content.web);
  return withOpenToken({ ...rendered, notification_id: origin.notificationId, project_id: origin.projectId });
};

/** Renders a notification for Web Push: JSON, to be encrypted for each subscription. */
export const renderWebPush = (content: NotificationContent, origin: Origin): WebPushRendering => {
  const templateFor = perLocalization(content, (words) => template(content, origin, words));
  return {
    urgency: content.silent || content.priority === "normal" ? "normal" : "high",
    body: (openToken, locale) => {
      const { head, tail } = templateFor(locale);
      return head + openToken + tail;
    },
  };
};
