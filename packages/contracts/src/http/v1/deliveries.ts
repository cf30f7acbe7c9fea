import { z } from "zod";
import { DeviceId, NotificationId } from "../../ids.ts";
import { named } from "../../named.ts";
import { Platform } from "../../platforms.ts";
import { Notification, NotificationStatus } from "./notifications.ts";
import { pageQuery } from "./pagination.ts";

const count = z.number().int().min(0);

export const DeliveryStatus = z
  .enum(["pending", "accepted", "failed", "expired", "cancelled", "skipped"])
  .meta({ id: "DeliveryStatus" });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** The query of `GET /notifications/{id}/deliveries`. */
export const DeliveryListQuery = z.strictObject({
  ...pageQuery,
  status: DeliveryStatus.optional().meta({ description: "Only deliveries with this status" }),
});

const outcome = {
  reason: z
    .string()
    .optional()
    .meta({
      description: "Why it was not accepted: a delivery reason (/docs/errors#reasons)",
      examples: ["unregistered"],
    }),
  provider_reason: z
    .string()
    .optional()
    .meta({ description: "The provider's own words", examples: ["410 Unregistered"] }),
  provider_id: z
    .string()
    .optional()
    .meta({ description: "The provider's id of the push", examples: ["7B1F0C52-9C3E-4B7A-8F3D-2A4E5D6C7B8A"] }),
  possible_repeat: z.boolean().meta({ description: "The device may have received it twice", examples: [false] }),
};

/** What the device reported of a push. */
const reported = {
  receipt_asked: z.boolean().optional().meta({ description: "The device was asked to report the arrival; absent: no" }),
  received_at: z.iso.datetime().optional().meta({ description: "When its app ran with this push" }),
  dismissed_at: z.iso.datetime().optional(),
  opened_at: z.iso.datetime().optional(),
  button: z
    .string()
    .optional()
    .meta({ description: "The button that opened it; absent: none", examples: ["track"] }),
};

/** The result of one notification on one device. */
export const Delivery = named("Delivery", {
  device_id: DeviceId,
  platform: Platform,
  status: DeliveryStatus,
  user_id: z.string().optional().meta({ description: "The user that the device belonged to when the push was sent" }),
  ...outcome,
  attempts: count.meta({
    description:
      "How often it was sent, at most eight times. Sends that the provider certainly did not process do not count: it could not be reached, was unavailable, or limited its senders",
  }),
  at: z.iso.datetime(),
  ...reported,
});
export type Delivery = z.infer<typeof Delivery>;

/** A notification in the timeline of a device, with its result on that device. */
export const DeviceNotification = Delivery.omit({ device_id: true })
  .extend({
    notification: Notification.pick({ id: true, status: true, title: true, body: true, created_at: true }),
  })
  .meta({
    id: "DeviceNotification",
    examples: [
      {
        notification: {
          id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
          status: "completed",
          title: "Your order has shipped",
          body: "It arrives tomorrow before noon.",
          created_at: "2030-01-31T09:00:00.000Z",
        },
        platform: "ios",
        status: "accepted",
        user_id: "u_8412",
        provider_id: "7B1F0C52-9C3E-4B7A-8F3D-2A4E5D6C7B8A",
        possible_repeat: false,
        attempts: 1,
        at: "2030-01-31T09:00:01.000Z",
        opened_at: "2030-01-31T09:01:36.000Z",
      },
    ],
  });
export type DeviceNotification = z.infer<typeof DeviceNotification>;

/** One try to hand a notification to a provider, or why it was not tried. */
export const DeliveryAttempt = named("DeliveryAttempt", {
  attempt: z.number().int().min(1).optional().meta({
    description: "The number of the attempt; absent: nothing was sent, or the provider certainly did not process it",
  }),
  at: z.iso.datetime(),
  outcome: z
    .enum([
      "accepted",
      "failed",
      "deferred",
      "unknown",
      "paused",
      "blocked",
      "delayed",
      "expired",
      "cancelled",
      "skipped",
      "sending",
    ])
    .meta({
      description:
        "`deferred` and `unknown` are tried again; `blocked`: not sent, because the provider's server fails, cannot be reached or limits its senders; `delayed`: not sent, because of quiet hours; `sending`: no answer is known yet",
    }),
  until: z.iso.datetime().optional().meta({
    description: "When quiet hours end that delay it, or that outlast its time to live; absent: no such hours",
  }),
  ...outcome,
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** The delivery trace: everything about one notification and one device, or why the device did not get it. */
export const DeliveryTrace = named(
  "DeliveryTrace",
  {
    notification: z.object({ id: NotificationId, status: NotificationStatus }),
    device: z.object({ id: DeviceId, platform: Platform, status: z.enum(["active", "inactive"]) }),
    /** The target that matched the device, as sent; absent if none did. */
    matched: z.string().optional(),
    /** `not_addressed`: no target matched the device when the notification was expanded. */
    status: z.enum(["not_addressed", "pending", "accepted", "failed", "expired", "cancelled", "skipped"]),
    user_id: z.string().optional().meta({ description: "The user that the device belonged to when the push was sent" }),
    attempts: z.array(DeliveryAttempt),
    next_attempt_at: z.iso.datetime().optional(),
    ...reported,
    explanation: z
      .array(z.string())
      .min(1)
      .meta({
        description: "What happened, in sentences, oldest first; why the device got nothing, if it did not",
        examples: [["The notification was accepted.", "The target topic:news named the device."]],
      }),
  },
  {
    examples: [
      {
        notification: { id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac", status: "completed" },
        device: { id: "dev_06bq4ghm31tz5d2ns8y7k9w0ac", platform: "ios", status: "inactive" },
        matched: "topic:news",
        status: "failed",
        attempts: [
          {
            attempt: 1,
            at: "2030-01-31T09:00:01.000Z",
            outcome: "failed",
            reason: "unregistered",
            provider_reason: "410 Unregistered",
            possible_repeat: false,
          },
        ],
        explanation: [
          "The target `topic:news` matched the device.",
          "APNs refused the push: the token is not registered.",
        ],
      },
    ],
  },
);
export type DeliveryTrace = z.infer<typeof DeliveryTrace>;
