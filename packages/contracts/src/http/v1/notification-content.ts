import { z } from "zod";
import { ActivityPush } from "../../activity-push.ts";
import { isWholeUrl } from "../../links.ts";
import { maxLocaleLength, readLocale } from "../../locale.ts";
import { named, namedBody } from "../../named.ts";
import { AppId } from "../../platforms.ts";
import { PushName } from "../../push-types.ts";
import { RecipientKind } from "../../recipients.ts";
import { tagFields } from "../../tags.ts";
import { TemplateVersion } from "../../template-version.ts";
import { EscalateAfter } from "./escalation.ts";
import { Ttl, timeFields } from "./local-time.ts";
import { notificationLimits, TargetEntry, targetList } from "./notification-limits.ts";
import { withFcmNames } from "./payload-rules.ts";
import { boundedText, imageUrl, presentationFields } from "./presentation-fields.ts";
import { ButtonTitles, receiptFields } from "./receipt-fields.ts";
import { Rollout } from "./rollout.ts";

const LinkTo = z
  .string()
  .max(2048, "must be at most 2048 characters")
  .refine(
    (link) => link.startsWith("/") || isWholeUrl(link),
    "must be an absolute URL such as https://example.com/news, or an in-app path such as /news/42",
  )
  .meta({
    description:
      "What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written",
    pattern: "^(/([^/\\\\]|$)|[A-Za-z][A-Za-z0-9+.-]*:.)",
    examples: ["/orders/42"],
  });

const Image = imageUrl.meta({
  description:
    "https URL of a picture. iOS: the payload's `image`, with `mutable-content`, so that the app's notification service extension can download it. Android: FCM shows it. Web: `notification.image`",
  examples: ["https://example.com/parcel.jpg"],
});

const override = (
  description: string,
  example: Record<string, unknown>,
  named: (value: Record<string, unknown>) => Record<string, unknown> = (value) => value,
) =>
  z
    .record(z.string(), z.unknown(), { error: "must be a JSON object" })
    .overwrite(named)
    .optional()
    .meta({ description, examples: [example] });

const Title = boundedText(256).meta({
  description:
    "The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true",
  examples: ["Your order has shipped"],
});
const Body = boundedText(4000).meta({
  description:
    "The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body`",
  examples: ["It arrives tomorrow before noon."],
});

/** The texts and links of a notification, which may differ by language. */
export const words = {
  title: Title.optional(),
  body: Body.optional(),
  link_to: LinkTo.optional(),
  image: Image.optional(),
};

const notLocale = "must be a locale such as `de`, `pt-BR` or `zh-Hant`";

export const Locale = z
  .string()
  .max(maxLocaleLength, `must be at most ${maxLocaleLength} characters`)
  .regex(/^[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8})*$/, { error: notLocale, abort: true })
  .refine((locale) => readLocale(locale) !== undefined, notLocale);

export const localizationsOf = <Words extends z.core.$ZodLooseShape>(fields: Words) =>
  z
    .record(Locale, z.strictObject({ ...fields, buttons: ButtonTitles }))
    .optional()
    .meta({
      maxProperties: notificationLimits.localizations,
      description:
        "`title`, `body`, `link_to`, `image` and titles of `buttons` by locale. A device gets those for its `identifiers.current_locale`, by what locales mean: `zh-Hant` is also for `zh-TW`, `es-419` for `es-MX`, `pt-BR` for `pt-PT` if nothing is nearer, but never another script; otherwise the notification's own. A field that a localization leaves out is the notification's own",
      examples: [{ de: { title: "Ihre Bestellung ist unterwegs" } }],
    });

/** What a notification shows of its recipients. */
export const RecipientList = named(
  "RecipientList",
  {
    kind: RecipientKind,
    lines: z.number().int().min(1).optional().meta({ description: "How many came with the request" }),
    upload: z.literal(true).optional().meta({ description: "They are uploaded as a file" }),
  },
  { examples: [{ kind: "user", lines: 2 }] },
);

/** The fields of a notification as its sender writes them, identical on the bus and in the ledger. */
export const content = {
  ...words,
  targets: targetList(TargetEntry, { min: 0 }),
  app: AppId.optional().meta({
    description:
      "Only devices that name this app get it. Absent: devices of every app. For those that name none, send to `condition:!exists(app)`",
    examples: ["com.example.driver"],
  }),
  data: z
    .record(z.string().min(1).max(256), z.string())
    .optional()
    .meta({
      description:
        "Text values for the app, by name. iOS and web: the payload's `data`. Android: entries of FCM's `data`. Refused: names that FCM reserves (`from`, `message_type`, and all that begin with `google.` or `gcm.`), and Herald's own `notification_id`, `project_id`, `token`, `herald`, `receipt` and `aps`, and `link_to`, `thread`, `app_badge` and `buttons` beside the field of the notification",
      examples: [{ order: "42" }],
    }),
  ...presentationFields,
  ...receiptFields(LinkTo),
  silent: z
    .boolean()
    .optional()
    .meta({
      description:
        "True: wakes the app and shows nothing. iOS: a background push, which the system may delay or drop. Android: a data message with normal priority. Web: a payload without `notification`; most browsers show a notice of their own when a service worker shows none",
      examples: [false],
    }),
  priority: z
    .enum(["high", "normal"])
    .optional()
    .meta({
      description:
        "`high` (the default) delivers at once, `normal` when it suits the battery. iOS: `apns-priority` 10 or 5. Android: `HIGH` or `NORMAL`. Web: `Urgency` `high` or `normal`, unless `urgency` says otherwise. Silent notifications are always `normal`",
      examples: ["high"],
    }),
  ttl: Ttl.optional(),
  escalate_after: EscalateAfter.optional(),
  collapse_id: z
    .string()
    .min(1)
    .refine((id) => Buffer.byteLength(id) <= 64, "must be at most 64 bytes")
    .refine((id) => /^[\x21-\x7e]+$/.test(id), "must be visible ASCII without spaces: it travels in a header")
    .optional()
    .meta({
      description:
        "A later notification with the same id replaces an earlier one on the screen. iOS: `apns-collapse-id`. Android: `tag` and `collapse_key`. Web: `tag` and `Topic`, which has a hash of an id that is not base64url. Absent: the notification's own id, so only a repeat of it is replaced. The push that arrives last replaces the others, and pushes sent within a second may arrive in any order: send the next one after `io.herald.delivery.accepted.v1` of the one before, or put a version into `data` and let the app drop older ones. Updates of a Live Activity are in order",
      examples: ["order-42"],
    }),
  ...tagFields,
  push_name: PushName.optional().meta({
    description: "The kind of the control that a push of the type `controls` updates",
    examples: ["garage-door"],
  }),
  activity: ActivityPush.optional().meta({
    description: "The Live Activity that it starts, updates or ends, with its state; absent: none. iOS alone",
    examples: [
      {
        ...{ id: "order-4711", version: 3, event: "update", timestamp: 1_893_456_000 },
        content_state: { status: "on its way", minutes: 12 },
      },
    ],
  }),
  template: TemplateVersion.optional().meta({
    description: "The template that its texts and settings are from; absent: none. Devices do not get it",
    examples: [{ name: "order-shipped", version: 3 }],
  }),
  recipients: RecipientList.optional().meta({
    description: "It has recipients with values of their own, and no targets. Devices do not get it",
    examples: [{ kind: "user", lines: 2 }],
  }),
  ...timeFields,
  rollout: Rollout.optional().meta({
    description:
      'It begins with few devices, goes no faster than asked, and stops by itself when devices fail; absent: all devices at once. Its time to live begins again with each part. Not beside `recipients` and `time_zone: "device"`',
    examples: [{ canary: { share: 0.01, wait: "10m" }, per_minute: 60_000, stop_if: { failed: 0.05 } }],
  }),
  localizations: localizationsOf(words),
  ios: override(
    "Merged over the APNs payload (JSON Merge Patch); `null` removes a field. Herald's own `notification_id`, `project_id`, `token`, `receipt` and `buttons` are reserved. iOS alone",
    {
      aps: { "target-content-id": "order-42" },
    },
  ),
  android: override(
    "Merged over FCM's `message` (JSON Merge Patch); `null` removes a field. Fields that FCM's HTTP v1 API does not have or would refuse are refused, and so are its target and `android.data`, which would replace Herald's values. Android alone",
    { android: { notification: { color: "#3366ff" } } },
    withFcmNames,
  ),
  web: override(
    "Merged over the JSON that the service worker gets (JSON Merge Patch). Herald's own `notification_id`, `project_id`, `token`, `receipt`, `buttons` and `web_push` are reserved. Web alone",
    {
      notification: { requireInteraction: true },
    },
  ),
};

/** The content of a notification as the backend sent it, with the API's field names also on the bus and in the ledger. */
export const NotificationContent = namedBody("NotificationContent", content);
export type NotificationContent = z.infer<typeof NotificationContent>;
