import type { FcmTokenKind, NotificationContent, Platform, Urgency } from "@herald/contracts";
import { apnsPayload, apnsPriority, apnsPushType } from "./apns.ts";
import { activityFcmBody } from "./live-activity.ts";
import { kitFields } from "./push-form.ts";
import {
  collapseIdOf,
  compact,
  override,
  type PayloadTemplate,
  type PushForm,
  type PushOrigin,
  perLocalization,
  plainForm,
  type Words,
} from "./render.ts";
import { webPushPayload, webPushTopic, webPushUrgency } from "./webpush.ts";

/** Maximum bytes of an FCM message's notification and data. */
export const fcmMaxBytes = 4096;

/** One notification as FCM v1 gets it. */
export type FcmRendering = {
  /** The JSON body of `messages:send` for one device. */
  readonly body: (
    target: { token: string; kind: FcmTokenKind; liveToken?: string | undefined },
    openToken: string,
    locale?: string,
  ) => string;
};

const notification = (content: NotificationContent, words: Words): Record<string, unknown> | undefined =>
  content.silent ? undefined : compact({ title: words.title, body: words.body, image: words.image });

/** What Android calls the priority of a notification, before version 8; later versions follow the channel. */
const notificationPriorities = {
  passive: "PRIORITY_LOW",
  active: "PRIORITY_DEFAULT",
  "time-sensitive": "PRIORITY_HIGH",
  critical: "PRIORITY_MAX",
} as const satisfies Record<Urgency, string>;

const android = (content: NotificationContent, origin: PushOrigin, ttlSeconds: number): Record<string, unknown> =>
  compact({
    priority: content.silent || content.priority === "normal" ? "NORMAL" : "HIGH",
    ttl: `${ttlSeconds}s`,
    // Never the notification's id: FCM stores four keys for an offline device and drops messages with a fifth.
    collapse_key: content.collapse_id,
    notification: content.silent
      ? undefined
      : compact({
          sound: content.sound,
          click_action: content.click_action,
          notification_count: content.badge,
          tag: collapseIdOf(content, origin),
          channel_id: content.android_channel,
          notification_priority: content.urgency && notificationPriorities[content.urgency],
        }),
  });

const androidMessage = (content: NotificationContent, origin: PushOrigin, ttlSeconds: number, words: Words) =>
  override(
    compact({
      notification: notification(content, words),
      android: android(content, origin, ttlSeconds),
      data: compact({ ...content.data, link_to: words.link_to, ...(content.thread && { thread: content.thread }) }),
    }),
    content,
    words,
    content.android,
  );

const objectOr = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/**
 * The message that the app's kit draws: FCM would show one with a `notification` by itself, without starting the app. What it would have
 * shown, with the override, is in `data.herald`.
 */
const drawnMessage = (message: Record<string, unknown>, { buttons, receipt }: ReturnType<typeof kitFields>) => {
  const { notification: shown, android: settings, data, ...rest } = message;
  const { notification: own, ...android } = objectOr(settings);
  const { title, body, image } = objectOr(shown);
  const { tag, channel_id: channel, notification_count: badge, sound, click_action, color, icon } = objectOr(own);
  const herald = compact({ title, body, image, channel, tag, badge, sound, click_action, color, icon, buttons });
  return {
    ...rest,
    android,
    data: { ...objectOr(data), ...textValues({ receipt }), herald: JSON.stringify(herald) },
  };
};

/** FCM's `data` has only text; an override may have set other values. */
const textValues = (data: unknown): Record<string, string> => {
  if (typeof data !== "object" || data === null) return {};
  return Object.fromEntries(
    Object.entries(data)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
};

/** The payload that APNs would get directly, but with `data` and `link_to` in FCM's `data`, where apps on Android find them too. */
const iosMessage = (
  content: NotificationContent,
  origin: PushOrigin,
  expiration: string,
  words: Words,
  form: PushForm,
) => {
  const { data, link_to, image, ...rest } = apnsPayload(content, words, form);
  // An override must not set these fields: they identify the notification.
  const { notification_id: _, project_id: __, token: ___, ...payload } = rest;
  return {
    data: { ...textValues(data), ...textValues({ link_to }) },
    apns: compact({
      headers: {
        "apns-push-type": apnsPushType(content),
        "apns-priority": String(apnsPriority(content)),
        "apns-expiration": expiration,
        "apns-collapse-id": collapseIdOf(content, origin),
      },
      payload,
      // The field that Firebase's notification service extension reads.
      fcm_options: typeof image === "string" ? { image } : undefined,
    }),
  };
};

/** The payload that a service worker would get itself. Firebase's opens `link`, which must be https; an app's own reads `data.link_to`. */
const webMessage = (
  content: NotificationContent,
  origin: PushOrigin,
  ttlSeconds: number,
  words: Words,
  form: PushForm,
) => {
  const { notification, data, ...rest } = webPushPayload(content, origin, words, form);
  const { link_to: link } = rest;
  return {
    data: { ...textValues(data), ...textValues(rest) },
    webpush: compact({
      headers: {
        TTL: String(ttlSeconds),
        Urgency: webPushUrgency(content),
        Topic: webPushTopic(collapseIdOf(content, origin)),
      },
      notification,
      fcm_options: typeof link === "string" && link.startsWith("https://") ? { link } : undefined,
    }),
  };
};

const template = ({ data, ...message }: Record<string, unknown>, origin: PushOrigin): PayloadTemplate => {
  const own = { notification_id: origin.notificationId, project_id: origin.projectId };
  const fields = { ...(typeof data === "object" ? data : {}), ...own };
  // A target in an override would send to a device that the ledger does not know.
  const rest = JSON.stringify({ ...message, token: undefined, fid: undefined, topic: undefined, condition: undefined });
  return {
    head: `{"message":{"data":${JSON.stringify(fields).slice(0, -1)},"token":"`,
    tail: rest === "{}" ? '"},' : `"},${rest.slice(1, -1)},`,
  };
};

/** How long FCM may still keep a message. */
export type FcmLifetime = {
  readonly ttlSeconds: number;
  /** The same in the form of APNs: seconds since 1970; `0`: APNs does not store the push. */
  readonly apnsExpiration: string;
};

/** Renders a notification for devices of a platform, for FCM v1. */
export const renderFcm = (
  content: NotificationContent,
  origin: PushOrigin,
  platform: Platform,
  { ttlSeconds, apnsExpiration }: FcmLifetime,
  form: PushForm = plainForm,
): FcmRendering => {
  if (content.activity) {
    const headers = { "apns-priority": String(apnsPriority(content)), "apns-expiration": apnsExpiration };
    return { body: activityFcmBody(content.activity, origin, headers) };
  }
  const messages: Record<Platform, (words: Words) => Record<string, unknown>> = {
    android: (words) => {
      const message = androidMessage(content, origin, ttlSeconds, words);
      return form === plainForm ? message : drawnMessage(message, kitFields(content, words, form));
    },
    ios: (words) => iosMessage(content, origin, apnsExpiration, words, form),
    web: (words) => webMessage(content, origin, ttlSeconds, words, form),
  };
  const templateFor = perLocalization(content, (words) => template(messages[platform](words), origin));
  return {
    body: (target, openToken, locale) => {
      const { head, tail } = templateFor(locale);
      return `${head}${openToken}${tail}"${target.kind}":${JSON.stringify(target.token)}}}`;
    },
  };
};

type Weighed = {
  readonly notification?: unknown;
  readonly data: unknown;
  readonly apns?: { readonly payload?: unknown };
  readonly webpush?: { readonly notification?: unknown };
};

/** The size that FCM limits, in bytes of JSON: the notification and the data of a message. FCM merges both for APNs and browsers. */
export const fcmWeight = (body: string): number => {
  const { notification, data, apns, webpush } = (JSON.parse(body) as { message: Weighed }).message;
  const counted = apns
    ? { ...(apns.payload as object), ...(data as object) }
    : { notification: webpush?.notification ?? notification, data };
  return Buffer.byteLength(JSON.stringify(counted));
};
