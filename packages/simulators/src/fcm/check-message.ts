import { z } from "zod";
import { parseStrictJson } from "../strict-json.ts";
import type { Violation } from "./errors.ts";

const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** An object of the API: every field is optional, in either spelling of protobuf's JSON. Unknown fields are errors. */
const fields = (shape: Record<string, z.ZodType>) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(shape).flatMap(([name, type]) => [
        [name, type.optional()],
        [camel(name), type.optional()],
      ]),
    ),
  );

const text = z.string();
const bool = z.boolean();
const texts = z.array(text);
const struct = z.record(text, z.unknown());
const strings = z.record(text, text, "a map of strings to strings");
const duration = z.string().regex(/^\d+(?:\.\d{1,9})?s$/, 'a duration such as "3600s"');

/** Four weeks, the longest that FCM stores a message. */
const maxTtlSeconds = 2_419_200;
const ttl = duration.refine((value) => Number.parseFloat(value) <= maxTtlSeconds, `at most ${maxTtlSeconds}s`);

const data = strings.superRefine((values, context) => {
  for (const key of Object.keys(values)) {
    if (key === "from" || key === "message_type" || /^(?:google|gcm)\./.test(key)) {
      context.addIssue({ code: "custom", path: [key], message: "a key that FCM keeps for itself" });
    }
  }
});

const label = z.string().regex(/^[A-Za-z0-9\-_.~%]{1,50}$/, "a label such as spring-2030");
const visibilities = ["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"];
const proxies = ["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"];
const notificationPriorities = ["UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX"].map((one) => `PRIORITY_${one}`);

const androidNotification = fields({
  title: text,
  body: text,
  icon: text,
  color: z.string().regex(/^#[0-9a-f]{6}$/i, "a colour such as #rrggbb"),
  sound: text,
  tag: text,
  click_action: text,
  body_loc_key: text,
  body_loc_args: texts,
  title_loc_key: text,
  title_loc_args: texts,
  channel_id: text,
  ticker: text,
  sticky: bool,
  event_time: z.iso.datetime({ offset: true }),
  local_only: bool,
  notification_priority: z.enum(notificationPriorities),
  default_sound: bool,
  default_vibrate_timings: bool,
  default_light_settings: bool,
  vibrate_timings: z.array(duration),
  visibility: z.enum(visibilities),
  notification_count: z.int(),
  light_settings: fields({ color: struct, light_on_duration: duration, light_off_duration: duration }),
  image: text,
  bypass_proxy_notification: bool,
  proxy: z.enum(proxies),
});

const message = fields({
  name: text,
  data,
  notification: fields({ title: text, body: text, image: text }),
  android: fields({
    collapse_key: text,
    priority: z.enum(["NORMAL", "HIGH", "normal", "high"]),
    ttl,
    restricted_package_name: text,
    data,
    notification: androidNotification,
    fcm_options: fields({ analytics_label: label }),
    direct_boot_ok: bool,
    bandwidth_constrained_ok: bool,
    restricted_satellite_ok: bool,
  }),
  android_v2: struct,
  webpush: fields({
    headers: strings,
    data,
    notification: struct,
    fcm_options: fields({ link: text, analytics_label: label }),
  }),
  apns: fields({
    headers: strings,
    payload: struct,
    fcm_options: fields({ analytics_label: label, image: text }),
    live_activity_token: text,
  }),
  fcm_options: fields({ analytics_label: label }),
  token: z.string().regex(/^[\w:-]{1,4096}$/, "The registration token is not a valid FCM registration token"),
  fid: z.string().regex(/^[cdef][\w-]{21}$/, "The Firebase Installation ID is not valid"),
  topic: z.string().regex(/^[A-Za-z0-9-_.~%]+$/, "a topic name without /topics/"),
  condition: text,
});

const SendRequest = z.strictObject({
  message,
  validate_only: bool.optional(),
  validateOnly: bool.optional(),
});

const targets = ["token", "fid", "topic", "condition"] as const;

/** "4096 bytes for most messages … includes both the keys and the values." */
const maxBytes = 4096;

const bytesOf = (value: unknown): number => {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value !== "object" || value === null) return String(value).length;
  return Object.entries(value).reduce((sum, [key, inner]) => sum + Buffer.byteLength(key) + bytesOf(inner), 0);
};

export interface CheckedMessage {
  /** The device: its token or fid; `topic:…` and `condition:…` otherwise. */
  readonly target: string;
  /** The message for the device, without its target. */
  readonly payload: Readonly<Record<string, unknown>>;
  readonly validateOnly: boolean;
}

const wrong = (field: string, description: string) => ({ violations: [{ field, description }] });

/** Checks a send request. Returns its message, or the errors of all fields. */
export function checkMessage(body: string): CheckedMessage | { readonly violations: readonly Violation[] } {
  let document: unknown;
  try {
    document = parseStrictJson(body);
  } catch (error) {
    return wrong("", `Invalid JSON payload received: ${(error as Error).message}`);
  }
  const parsed = SendRequest.safeParse(document);
  if (!parsed.success) {
    return {
      violations: parsed.error.issues.map(({ path, message: description }) => ({ field: path.join("."), description })),
    };
  }
  const { token, fid, topic, condition, ...payload } = parsed.data.message as Record<string, unknown>;
  const given = Object.entries({ token, fid, topic, condition }).filter(([, value]) => value !== undefined);
  const [first] = given;
  if (first === undefined) return wrong("message", "Recipient of the message is not set.");
  if (given.length > 1)
    return wrong("message", `oneof field 'target' is set more than once: exactly one of ${targets.join(", ")}`);
  const android = payload.android as { data?: unknown; notification?: unknown } | undefined;
  const shown = [android?.data ?? payload.data, payload.notification, android?.notification];
  const bytes = shown.reduce<number>((sum, part) => sum + (part === undefined ? 0 : bytesOf(part)), 0);
  if (bytes > maxBytes) return wrong("message", `Message is too big: ${bytes} bytes, at most ${maxBytes}`);
  const [kind, value] = first;
  return {
    target: kind === "token" || kind === "fid" ? String(value) : `${kind}:${value}`,
    payload,
    validateOnly: parsed.data.validate_only ?? parsed.data.validateOnly ?? false,
  };
}
