import { z } from "zod";
import type { PathProblem } from "../../named.ts";
import { isObject } from "../../plain-batch.ts";

/** What a provider or Herald reads in a payload, so that a value of the sender would be lost or refused. */

const reserved = "is reserved: Herald sets it, so choose another name";
const reservedByFcm =
  "is a name that FCM refuses: rename it; `from`, `message_type` and names that begin with `google.` or `gcm.` are reserved";

/** FCM's reserved words (reference of `projects.messages`, `data`); `gcm.notification.` alone is named there, all of `gcm.` is Google's. */
const isReservedByFcm = (name: string): boolean =>
  name === "from" || name === "message_type" || /^(google|gcm)\./.test(name);

/** The ids and the open token, which every push contains, and what kits read. */
const ids = ["notification_id", "project_id"] as const;
const ofHerald = [...ids, "token", "receipt"] as const;
const inPayload: ReadonlySet<string> = new Set([...ofHerald, "buttons", "web_push"]);
// Where FCM serves an iPhone, it puts the entries of `data` beside `aps`.
const inData: ReadonlySet<string> = new Set([...ofHerald, "herald", "aps"]);

type Path = PathProblem["path"];

const namesIn = (value: unknown, path: Path, problemOf: (name: string) => string | undefined): PathProblem[] =>
  !isObject(value)
    ? []
    : Object.keys(value).flatMap((name) => {
        const message = problemOf(name);
        return message === undefined ? [] : [{ path: [...path, name], message }];
      });

/** FCM gets `data` of every platform beside Herald's own values, as one flat map. */
const dataProblems = (data: unknown, path: Path): PathProblem[] =>
  namesIn(data, path, (name) => {
    if (isReservedByFcm(name)) return reservedByFcm;
    return inData.has(name) ? reserved : undefined;
  });

// FCM's message, as google.firebase.fcm.v1.Message describes it. An override may remove any of its fields.

const fields = (shape: Record<string, z.ZodType>) =>
  z.strictObject(
    Object.fromEntries(Object.entries(shape).map(([name, type]) => [name, type.nullish()])),
    "must be a JSON object",
  );
const text = z.string("must be a text");
const flag = z.boolean("must be true or false");
const texts = z.array(text, "must be a list of texts");
const object = z.record(z.string(), z.unknown(), "must be a JSON object");
const textsByName = z.record(z.string(), text.nullable(), "must be an object of texts");
const oneOf = (...values: string[]) => z.enum(values, `must be one of ${values.join(", ")}`);
const target = z.never("is reserved: Herald names the device that gets the push");
const options = {
  analytics_label: text.regex(
    /^[A-Za-z0-9._~%-]{1,50}$/,
    "must be 1 to 50 letters, digits and `-`, `_`, `.`, `~`, `%`",
  ),
};

const maxTtlSeconds = 2_419_200;
const ttlRule = 'must be seconds such as "3600s", at most 28 days';
const ttl = text
  .regex(/^\d{1,10}(\.\d{1,9})?s$/, ttlRule)
  .refine((value) => Number.parseFloat(value) <= maxTtlSeconds, ttlRule);
const duration = text.regex(/^\d{1,12}(\.\d{1,9})?s$/, 'must be seconds such as "0.5s"');

const priorities = ["UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX"].map((one) => `PRIORITY_${one}`);
const shown = { title: text, body: text, image: text };

const androidNotification = fields({
  ...shown,
  icon: text,
  color: text.regex(/^#[0-9A-Fa-f]{6}$/, "must be a colour such as #3366ff"),
  sound: text,
  tag: text,
  click_action: text,
  body_loc_key: text,
  body_loc_args: texts,
  title_loc_key: text,
  title_loc_args: texts,
  channel_id: text,
  ticker: text,
  sticky: flag,
  event_time: z.iso.datetime({ offset: true, error: "must be an RFC 3339 time such as 2030-01-31T09:00:00Z" }),
  local_only: flag,
  notification_priority: oneOf(...priorities),
  default_sound: flag,
  default_vibrate_timings: flag,
  default_light_settings: flag,
  vibrate_timings: z.array(duration, "must be a list of durations"),
  visibility: oneOf("VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"),
  notification_count: z.int("must be a whole number").min(0, "must be 0 or more"),
  light_settings: fields({ color: object, light_on_duration: duration, light_off_duration: duration }),
  bypass_proxy_notification: flag,
  proxy: oneOf("PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"),
});

const fcmMessage = fields({
  ...{ name: text, token: target, fid: target, topic: target, condition: target },
  data: textsByName,
  notification: fields(shown),
  android: fields({
    collapse_key: text,
    priority: oneOf("HIGH", "NORMAL", "high", "normal"),
    ttl,
    restricted_package_name: text,
    data: z.never("is reserved: it would replace Herald's values; put yours into `data` of the message"),
    notification: androidNotification,
    fcm_options: fields(options),
    direct_boot_ok: flag,
    bandwidth_constrained_ok: flag,
    restricted_satellite_ok: flag,
  }),
  android_v2: object,
  webpush: fields({
    headers: textsByName,
    data: textsByName,
    notification: object,
    fcm_options: fields({ ...options, link: text }),
  }),
  apns: fields({
    headers: textsByName,
    payload: object,
    fcm_options: fields({ ...options, image: text }),
    live_activity_token: text,
  }),
  fcm_options: fields(options),
});

/** Objects of FCM's message whose names are FCM's own. */
const ownObjects: ReadonlySet<string> = new Set(["android", "notification", "light_settings", "fcm_options"]);
/** Objects in which only `fcm_options` is renamed, as the rest is the sender's or has one word. */
const platformObjects: ReadonlySet<string> = new Set(["webpush", "apns"]);

/** FCM reads both spellings of protobuf's JSON, `channelId` and `channel_id`, but not one field twice: Herald has the second. */
export const withFcmNames = (message: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(message).map(([name, value]) => {
      const snake = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      const key = Object.hasOwn(message, snake) ? name : snake;
      if (!isObject(value)) return [key, value];
      if (ownObjects.has(key)) return [key, withFcmNames(value)];
      if (!platformObjects.has(key)) return [key, value];
      // A browser's notification has names such as `requireInteraction`.
      const { notification, ...rest } = value;
      return [key, { ...withFcmNames(rest), ...(notification !== undefined && { notification }) }];
    }),
  );

const messageProblems = (message: unknown): PathProblem[] => {
  if (!isObject(message)) return [];
  return [
    ...(fcmMessage.safeParse(message).error?.issues ?? []).flatMap((issue) => {
      const path = ["android", ...issue.path.map(String)];
      return issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => ({
            path: [...path, key],
            message: "is not a field of FCM's HTTP v1 message at this place; its names are written as `channel_id`",
          }))
        : [{ path, message: issue.message }];
    }),
    ...dataProblems(message.data, ["android", "data"]),
  ];
};

/** Fields that go into FCM's flat map beside the sender's `data`, with their names there. */
const flattened = { link_to: "link_to", thread: "thread", badge: "app_badge", buttons: "buttons" } as const;

type Fields = Readonly<Partial<Record<"data" | "ios" | "android" | "web" | keyof typeof flattened, unknown>>> & {
  readonly localizations?: Readonly<Record<string, { readonly link_to?: unknown }>> | undefined;
};

/** A value of `data` that would be lost, because FCM gets a field of the notification under the same name. */
const flattenedProblems = (notification: Fields): PathProblem[] =>
  Object.entries(flattened).flatMap(([field, name]) => {
    const isSet =
      notification[field as keyof typeof flattened] !== undefined ||
      (field === "link_to" &&
        Object.values(notification.localizations ?? {}).some((words) => words.link_to !== undefined));
    return isSet && isObject(notification.data) && Object.hasOwn(notification.data, name)
      ? [{ path: ["data", name], message: `is set by \`${field}\` too: leave one of them out` }]
      : [];
  });

const ownNames = (name: string) => (inPayload.has(name) ? reserved : undefined);

const iosProblems = (ios: unknown): PathProblem[] => {
  if (!isObject(ios)) return [];
  const isBroken = Object.hasOwn(ios, "aps") && !isObject(ios.aps);
  return [
    ...namesIn(ios, ["ios"], ownNames),
    ...(isBroken ? [{ path: ["ios", "aps"], message: "must be a JSON object: APNs refuses a push without one" }] : []),
    ...dataProblems(ios.data, ["ios", "data"]),
  ];
};

const webProblems = (web: unknown): PathProblem[] => {
  if (!isObject(web)) return [];
  const { notification, data } = web;
  const isBroken = notification !== undefined && notification !== null && !isObject(notification);
  return [
    // Where FCM serves a browser, these are in its flat map.
    ...namesIn(web, ["web"], (name) => (isReservedByFcm(name) ? reservedByFcm : ownNames(name))),
    ...(isBroken
      ? [{ path: ["web", "notification"], message: "must be a JSON object, or null, which removes it" }]
      : []),
    ...namesIn(isObject(notification) ? notification.data : undefined, ["web", "notification", "data"], (name) =>
      ids.includes(name as (typeof ids)[number]) ? reserved : undefined,
    ),
    ...dataProblems(data, ["web", "data"]),
  ];
};

/** What a provider would certainly refuse in a notification's `data` and overrides, and what Herald would write over. */
export const payloadProblems = (notification: Fields): PathProblem[] => [
  ...dataProblems(notification.data, ["data"]),
  ...flattenedProblems(notification),
  ...iosProblems(notification.ios),
  ...messageProblems(notification.android),
  ...webProblems(notification.web),
];
