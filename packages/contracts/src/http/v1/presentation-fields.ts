import { z } from "zod";
import { isWholeUrl } from "../../links.ts";

/** A text of a notification that may not be empty. */
export const boundedText = (max: number) =>
  z.string().min(1, "may not be empty").max(max, `must be at most ${max} characters`);

export const imageUrl = z
  .url({ protocol: /^https$/, error: "must be an https URL", abort: true })
  .refine(isWholeUrl, "must be a whole https URL")
  .max(2048, "must be at most 2048 characters");

/** How much a notification may interrupt. */
export const Urgency = z.enum(["passive", "active", "time-sensitive", "critical"]);
export type Urgency = z.infer<typeof Urgency>;

/** The fields of a notification that decide how a device presents it. */
export const presentationFields = {
  badge: z
    .number()
    .int()
    .min(0)
    .max(999_999)
    .optional()
    .meta({
      description:
        "The number on the app's icon; 0 removes it. iOS: `aps.badge`. Android: `notification_count`, which some launchers show. Web: the payload's `app_badge`, which the service worker may set",
      examples: [3],
    }),
  badge_image: imageUrl.optional().meta({
    description:
      "https URL of a small one-coloured image that stands for the app in Android's status bar. Web: `notification.badge`. iOS and Android apps ignore it",
    examples: ["https://example.com/badge.png"],
  }),
  icon: imageUrl.optional().meta({
    description:
      "https URL of an image that stands for the sender. Web: `notification.icon`. iOS and Android apps ignore it",
    examples: ["https://example.com/icon.png"],
  }),
  sound: boundedText(128)
    .optional()
    .meta({
      description:
        "iOS: `aps.sound`, `default` or a sound file in the app. Android: `notification.sound`, for versions without notification channels. Web: `notification.sound`, which browsers ignore today. Absent: no sound on iOS, the device's setting elsewhere",
      examples: ["default"],
    }),
  category: boundedText(128)
    .optional()
    .meta({
      description:
        "iOS: `aps.category`, a notification category that the app registered; its buttons are shown. Web: `notification.category`, for the service worker. Android ignores it",
      examples: ["ORDER_UPDATE"],
    }),
  click_action: boundedText(256)
    .optional()
    .meta({
      description:
        "Android: the action of the intent filter whose activity a tap starts; absent: the app's launcher activity. iOS and web ignore it",
      examples: ["OPEN_ORDER"],
    }),
  urgency: Urgency.optional().meta({
    description:
      "How much it may interrupt. iOS: `aps.interruption-level`; `time-sensitive` and `critical` need Apple's entitlements, and `critical` plays `sound`, or the default sound, even if the device is muted. Android: `notification_priority` `PRIORITY_LOW`, `PRIORITY_DEFAULT`, `PRIORITY_HIGH` or `PRIORITY_MAX`, for versions without notification channels. Web: `Urgency` `low`, `normal`, `high` or `high`, instead of that of `priority`. Silent notifications ignore it",
    examples: ["time-sensitive"],
  }),
  relevance: z
    .number()
    .min(0, "must be from 0 to 1")
    .max(1, "must be from 0 to 1")
    .optional()
    .meta({
      description:
        "How important it is among the app's notifications, from 0 to 1. iOS: `aps.relevance-score`, which orders its summary. Android and web ignore it",
      examples: [0.8],
    }),
  thread: boundedText(128)
    .optional()
    .meta({
      description:
        "Notifications with the same thread are grouped. iOS: `aps.thread-id`. Android: `data.thread`, for an app that groups them. Web ignores it",
      examples: ["order-42"],
    }),
  android_channel: boundedText(128)
    .optional()
    .meta({
      description:
        "Android: the id of the notification channel, which the app has created; absent or unknown: the channel that the app's manifest names. iOS and web ignore it",
      examples: ["orders"],
    }),
};
