import { z } from "zod";
import { DeviceId, NotificationId, ProjectId } from "../../ids.ts";
import { dangerousLinks } from "../../links.ts";
import { Platform } from "../../platforms.ts";
import { boundedContent, NewTargets, notificationLimits, TargetEntry, targetList } from "./notification-limits.ts";
import { OpenTotals } from "./stats.ts";

const dayInSeconds = 86_400;
/** FCM and most push services store a message at most four weeks. */
export const maxTtlSeconds = 28 * dayInSeconds;
export const maxScheduleDays = 30;

const text = (most: number) => z.string().min(1, "may not be empty").max(most, `must be at most ${most} characters`);

const bytes = (value: string) => Buffer.byteLength(value);

/** Where a tap leads: an absolute URL, or a path inside the app. */
const LinkTo = z
  .string()
  .max(2048, "must be at most 2048 characters")
  .refine(
    (link) => link.startsWith("/") || URL.canParse(link),
    "must be an absolute URL or an in-app path such as /news/42",
  )
  .meta({
    description:
      "An absolute URL, or a path inside the app such as /news/42. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written",
    pattern: "^(/([^/\\\\]|$)|[A-Za-z][A-Za-z0-9+.-]*:.)",
  });

const Image = z
  .url({ protocol: /^https$/, error: "must be an https URL" })
  .max(2048, "must be at most 2048 characters");

/** A whole provider payload's worth of JSON, merged over what Herald renders. */
const Override = z.record(z.string(), z.unknown(), { error: "must be a JSON object" });

const Localization = z.strictObject({
  title: text(256).optional(),
  body: text(4000).optional(),
  link_to: LinkTo.optional(),
  image: Image.optional(),
});

const content = {
  title: text(256)
    .optional()
    .meta({ examples: ["Hello"] }),
  body: text(4000)
    .optional()
    .meta({ examples: ["Your order has shipped"] }),
  targets: targetList(TargetEntry),
  link_to: LinkTo.optional(),
  data: z.record(z.string().min(1).max(256), z.string()).optional(),
  image: Image.optional(),
  badge: z.number().int().min(0).max(999_999).optional().meta({ description: "The number on the app's icon" }),
  badge_image: Image.optional().meta({
    description: "Web: https URL of the small one-coloured image that stands for the app in Android's status bar",
  }),
  sound: text(128).optional(),
  category: text(128)
    .optional()
    .meta({ description: "iOS: the notification category that the app registered, whose actions are offered" }),
  click_action: text(256).optional().meta({
    description:
      "Android: the action of the intent filter whose activity a tap starts. Absent: the app's launcher activity",
  }),
  silent: z.boolean().optional(),
  priority: z.enum(["high", "normal"]).optional(),
  ttl: z.number().int().min(0).max(maxTtlSeconds, `must be at most ${maxTtlSeconds} seconds (28 days)`).optional(),
  collapse_id: z
    .string()
    .min(1)
    .refine((id) => bytes(id) <= 64, "must be at most 64 bytes")
    .refine((id) => /^[\x21-\x7e]+$/.test(id), "must be visible ASCII without spaces: it travels in a header")
    .optional()
    .meta({
      description:
        "A later notification with the same id takes the place of an earlier one on the screen. Default: the notification's own id, so that only a repeat of it does",
    }),
  send_at: z.iso
    .datetime({ offset: true, error: "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00+01:00" })
    .optional(),
  localizations: z
    .record(
      z.string().regex(/^[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*$/, "must be a locale such as `de` or `pt-BR`"),
      Localization,
    )
    .optional()
    .meta({ maxProperties: notificationLimits.localizations }),
  ios: Override.optional(),
  android: Override.optional(),
  web: Override.optional(),
};

/** What the backend asked to be sent, in the words of the interface: the same shape on the bus and in the ledger. */
export const NotificationContent = z.strictObject(content).meta({ id: "NotificationContent" });
export type NotificationContent = z.infer<typeof NotificationContent>;

const newNotification = z
  .strictObject({ ...content, targets: NewTargets, dry_run: z.boolean().optional() })
  .superRefine(({ targets: _, ...notification }, context) => {
    if (notification.title === undefined && notification.body === undefined && notification.silent !== true)
      context.addIssue({
        code: "custom",
        path: [],
        message: "a `title` or a `body` is required unless `silent` is true",
      });
    for (const problem of dangerousLinks(notification)) context.addIssue({ code: "custom", ...problem });
  });

/** A notification that is to be sent. */
export const NewNotification = z.preprocess(boundedContent, newNotification).meta({ id: "NewNotification" });

/** Body of `POST /notifications`. */
export const SendNotification = z.strictObject({ notification: NewNotification }).meta({ id: "SendNotification" });
export type SendNotification = z.infer<typeof SendNotification>;

/** What `POST /notifications/batch` takes. */
export const batchSendLimits = { notifications: 500, bodyBytes: 4 * 1_048_576 } as const;

/** Body of `POST /notifications/batch`: each entry is a {@link NewNotification}, and judged by itself, so the body leaves open what it is. */
export const SendNotifications = z
  .strictObject({
    notifications: z
      .array(z.unknown().meta({ override: { $ref: "#/components/schemas/NewNotification" } }))
      .min(1, "at least one notification is required")
      .max(batchSendLimits.notifications, `at most ${batchSendLimits.notifications} notifications are accepted`),
  })
  .meta({ id: "SendNotifications" });
export type SendNotifications = z.infer<typeof SendNotifications>;

/** What came of one notification of a batch. */
export const SentNotification = z
  .union([
    z.object({ id: NotificationId }),
    z.object({ errors: z.array(z.string()).min(1).meta({ description: "Why this one was not accepted" }) }),
  ])
  .meta({ id: "SentNotification" });
export type SentNotification = z.infer<typeof SentNotification>;

export const NotificationStatus = z
  .enum(["scheduled", "accepted", "sending", "completed", "cancelled", "expired"])
  .meta({ id: "NotificationStatus" });
export type NotificationStatus = z.infer<typeof NotificationStatus>;

const count = z.number().int().min(0);

/** devices = accepted + failed + expired + cancelled + skipped + pending, always. */
export const NotificationCounts = z
  .object({
    devices: count,
    accepted: count,
    failed: count,
    expired: count,
    cancelled: count,
    skipped: count.default(0),
    pending: count,
    opened: count,
  })
  .meta({ id: "NotificationCounts" });
export type NotificationCounts = z.infer<typeof NotificationCounts>;

/** Of the opens of a notification: their share, the first and the last, and how long they took. */
export const NotificationOpens = z
  .object({
    open_rate: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .meta({ description: "`opened` / `accepted`; null before any is accepted" }),
    ...OpenTotals.shape,
  })
  .meta({ id: "NotificationOpens" });
export type NotificationOpens = z.infer<typeof NotificationOpens>;

export const Notification = z
  .object({
    id: NotificationId,
    status: NotificationStatus,
    ...content,
    counts: NotificationCounts,
    opens: NotificationOpens.optional().meta({ description: "At most 10 s behind; in the answers to reads alone" }),
    failures: z.record(z.string(), count).meta({ description: "Failed devices by reason" }),
    skips: z.record(z.string(), count).default({}).meta({ description: "Skipped devices by reason" }),
    unmatched: z.array(z.string()).meta({ description: "Targets that matched no active device" }),
    created_at: z.iso.datetime(),
    completed_at: z.iso.datetime().optional(),
  })
  .meta({ id: "Notification" });
export type Notification = z.infer<typeof Notification>;

export const DeliveryStatus = z
  .enum(["pending", "accepted", "failed", "expired", "cancelled", "skipped"])
  .meta({ id: "DeliveryStatus" });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** What became of one notification on one device. */
export const Delivery = z
  .object({
    device_id: DeviceId,
    platform: Platform,
    status: DeliveryStatus,
    user_id: z.string().optional().meta({ description: "Whose the device was when it was sent to" }),
    reason: z.string().optional(),
    provider_reason: z.string().optional(),
    provider_id: z.string().optional(),
    attempts: count,
    possible_repeat: z.boolean(),
    at: z.iso.datetime(),
    opened_at: z.iso.datetime().optional(),
  })
  .meta({ id: "Delivery" });
export type Delivery = z.infer<typeof Delivery>;

/** One attempt to hand a notification to a provider. */
export const DeliveryAttempt = z
  .object({
    attempt: z.number().int().min(1),
    at: z.iso.datetime(),
    outcome: z
      .enum([
        "accepted",
        "failed",
        "deferred",
        "unknown",
        "paused",
        "held",
        "expired",
        "cancelled",
        "skipped",
        "sending",
      ])
      .meta({
        description:
          "`deferred` and `unknown` are tried again; `held`: not sent, because the provider's server fails; `sending`: no answer is known yet",
      }),
    reason: z.string().optional(),
    provider_reason: z.string().optional(),
    provider_id: z.string().optional(),
    possible_repeat: z.boolean(),
  })
  .meta({ id: "DeliveryAttempt" });
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** Everything about one notification and one device: why it got it, or why it did not. */
export const DeviceStory = z
  .object({
    notification: z.object({ id: NotificationId, status: NotificationStatus }),
    device: z.object({ id: DeviceId, platform: Platform, status: z.enum(["active", "inactive"]) }),
    /** The target that names the device, as it was sent; absent when none does. */
    matched: z.string().optional(),
    /** `not_addressed`: the notification was not meant for this device when its targets were expanded. */
    status: z.enum(["not_addressed", "pending", "accepted", "failed", "expired", "cancelled", "skipped"]),
    user_id: z.string().optional().meta({ description: "Whose the device was when it was sent to" }),
    attempts: z.array(DeliveryAttempt),
    next_attempt_at: z.iso.datetime().optional(),
    opened_at: z.iso.datetime().optional(),
    story: z.array(z.string()).min(1).meta({ description: "The same in sentences, in the order in which it happened" }),
  })
  .meta({ id: "DeviceStory" });
export type DeviceStory = z.infer<typeof DeviceStory>;

/** What `dry_run` answers: who would get it and what they would get, with nothing sent or stored. */
export const DryRun = z
  .object({
    dry_run: z.literal(true),
    devices: z.object({ total: count, ios: count, android: count, web: count }),
    unmatched: z.array(z.string()),
    rendered: z
      .object({ ios: z.unknown().optional(), android: z.unknown().optional(), web: z.unknown().optional() })
      .meta({
        description: "One payload for each platform that has devices, with placeholders for device and open token",
      }),
  })
  .meta({ id: "DryRun" });
export type DryRun = z.infer<typeof DryRun>;

/** Body of `PUT /notifications/{id}/open`: the open token is in the payload that the device received. */
export const OpenNotification = z
  .strictObject({ project_id: ProjectId, token: z.string().min(1).max(512) })
  .meta({ id: "OpenNotification" });
export type OpenNotification = z.infer<typeof OpenNotification>;
