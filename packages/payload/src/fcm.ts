import type { FcmTokenKind, NotificationContent } from "@herald/contracts";
import { perLocalization, type Words } from "./localize.ts";
import { collapseIdOf, compact, type Origin, override, type Template } from "./render.ts";

/** The most bytes that FCM takes in a message's notification and data. */
export const fcmMaxBytes = 4096;

/** One notification as FCM v1 gets it. */
export type FcmRendering = {
  /** The JSON body of `messages:send` for one device. */
  readonly body: (target: { token: string; kind: FcmTokenKind }, openToken: string, locale?: string) => string;
};

const notification = (content: NotificationContent, words: Words): Record<string, unknown> | undefined =>
  content.silent ? undefined : compact({ title: words.title, body: words.body, image: words.image });

const android = (content: NotificationContent, origin: Origin, ttlSeconds: number): Record<string, unknown> =>
  compact({
    priority: content.silent || content.priority === "normal" ? "NORMAL" : "HIGH",
    ttl: `${ttlSeconds}s`,
    // Never the notification's id: FCM stores four keys for a device that is offline and drops what has a fifth.
    collapse_key: content.collapse_id,
    notification: content.silent
      ? undefined
      : compact({
          sound: content.sound,
          click_action: content.click_action,
          notification_count: content.badge,
          tag: collapseIdOf(content, origin),
        }),
  });

const template = (content: NotificationContent, origin: Origin, ttlSeconds: number, words: Words): Template => {
  const { data, ...message } = override(
    compact({
      notification: notification(content, words),
      android: android(content, origin, ttlSeconds),
      data: compact({ ...content.data, link_to: words.link_to }),
    }),
    content.android,
  );
  const own = { notification_id: origin.notificationId, project_id: origin.projectId };
  const fields = { ...(typeof data === "object" ? data : {}), ...own };
  // A target in an override would send to a device that the ledger does not know.
  const rest = JSON.stringify({ ...message, token: undefined, fid: undefined, topic: undefined, condition: undefined });
  return {
    head: `{"message":{"data":${JSON.stringify(fields).slice(0, -1)},"token":"`,
    tail: rest === "{}" ? '"},' : `"},${rest.slice(1, -1)},`,
  };
};

/** Renders a notification for FCM v1. `ttlSeconds`: how long FCM may still keep it. */
export const renderFcm = (content: NotificationContent, origin: Origin, ttlSeconds: number): FcmRendering => {
  const templateFor = perLocalization(content, (words) => template(content, origin, ttlSeconds, words));
  return {
    body: (target, openToken, locale) => {
      const { head, tail } = templateFor(locale);
      return `${head}${openToken}${tail}"${target.kind}":${JSON.stringify(target.token)}}}`;
    },
  };
};

/** What FCM counts of a rendered message: its notification and its data, in bytes of JSON. */
export const fcmWeight = (body: string): number => {
  const { message } = JSON.parse(body) as { message: { notification?: unknown; data: unknown } };
  return Buffer.byteLength(JSON.stringify({ notification: message.notification, data: message.data }));
};
