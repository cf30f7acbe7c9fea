import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { ListQuery } from "../http/v1/pagination.ts";
import { OpenTotals, Stats, StatsRequest } from "../http/v1/stats.ts";
import {
  ChangeWebhook,
  CreateWebhook,
  Recovered,
  Webhook,
  WebhookMessage,
  WebhookMessageDetail,
  WebhookMessageListQuery,
} from "../http/v1/webhooks.ts";
import { DeviceId, NotificationId, ProjectId, WebhookId, WebhookMessageId } from "../ids.ts";
import { exportRequest } from "./export-request.ts";

const count = z.number().int().min(0);

const times = z.record(z.string(), z.iso.datetime());
/** By device or notification; without a report it is absent. All but `openedAt` are absent when analytics is older than them. */
const reportTimes = z.object({
  openedAt: times,
  receivedAt: times.optional(),
  dismissedAt: times.optional(),
  /** The button of an open. */
  buttons: z.record(z.string(), z.string()).optional(),
});

/** Figures of up to this many days take milliseconds to read, but not by group, or for a topic, which adds up its notifications. */
const fewDays = 35;
const dayMs = 86_400_000;

const project = { projectId: ProjectId };
const webhook = { ...project, webhookId: WebhookId };
const message = { ...webhook, messageId: WebhookMessageId };
/** With the secret, `whsec_…`, which is shown only this once. */
const withSecret = z.object({ webhook: Webhook, secret: z.string() });

export const openRequests = defineRequests("analytics.opens", {
  /** The number of devices that opened each of up to 100 notifications, with further figures about the opens. */
  count: oneRequest(
    { projectId: ProjectId, notificationIds: z.array(NotificationId).min(1).max(100) },
    z.object({
      counts: z.record(z.string(), z.number().int().min(0)),
      /** Absent for a notification without opens, and when analytics is older than the field. */
      totals: z.record(z.string(), OpenTotals).optional(),
      /** Receipts, dismissals and opens by button; absent as for `totals`. */
      reports: z
        .record(
          z.string(),
          z.object({ received: count, dismissed: count, buttons: z.record(z.string(), count).optional() }),
        )
        .optional(),
    }),
  ),
  /** When each of up to 1,000 devices received, opened and dismissed one notification. */
  ofDevices: oneRequest(
    { projectId: ProjectId, notificationId: NotificationId, deviceIds: z.array(DeviceId).min(1).max(1000) },
    reportTimes,
  ),
  /** Whether all opens of a project that had arrived by a time are stored. */
  stored: oneRequest({ projectId: ProjectId, until: z.iso.datetime() }, z.object({ stored: z.boolean() })),
  /** When one device received, opened and dismissed each of up to 100 notifications. */
  ofNotifications: oneRequest(
    { projectId: ProjectId, deviceId: DeviceId, notificationIds: z.array(NotificationId).min(1).max(100) },
    reportTimes,
  ),
  /** Rows are `ExportedOpen`. */
  export: exportRequest({ notificationId: NotificationId.optional() }),
});

export const statsRequests = defineRequests("analytics.stats", {
  /** Sends, failures and opens in a time range; at most 10 s behind. Unknown things give zeros, not an error. */
  get: oneRequest(
    { projectId: ProjectId, request: StatsRequest },
    Stats,
    ({ request: { topic, by, from, to } }) =>
      topic !== undefined ||
      (by !== undefined && by !== "platform") ||
      Date.parse(to) - Date.parse(from) > fewDays * dayMs,
  ),
});

export const webhookRequests = defineRequests("analytics.webhooks", {
  /** The gateway creates the id, so that a repeated request creates the same webhook, with a secret that replaces the unseen one. */
  create: oneRequest({ ...webhook, settings: CreateWebhook.shape.webhook }, withSecret),
  list: listRequest(project, Webhook, ListQuery),
  get: oneRequest(webhook, Webhook),
  change: oneRequest({ ...webhook, change: ChangeWebhook.shape.webhook }, Webhook),
  delete: oneRequest(webhook, z.object({})),
  /**
   * Creates a new secret. The previous secret stays valid for a day; the one before it becomes invalid. A repeat with the same `rotationId`
   * replaces the secret that was never returned, and revokes none.
   */
  rotate: oneRequest({ ...webhook, rotationId: z.string() }, withSecret),
  /** Sends a test message. The gateway creates its id. */
  ping: oneRequest(message, WebhookMessage),
  /** Queues messages again that failed since a time, the oldest first, up to 10,000 per request. */
  recover: oneRequest({ ...webhook, since: z.iso.datetime() }, Recovered),
});

export const webhookMessageRequests = defineRequests("analytics.webhook-messages", {
  list: listRequest(webhook, WebhookMessage, WebhookMessageListQuery),
  get: oneRequest(message, WebhookMessageDetail),
  /** Sends a message at once, whatever its status. If that fails, it is retried on the schedule. */
  resend: oneRequest(message, WebhookMessage),
});

export const receiptRequests = defineRequests("analytics.receipts", {
  /** Rows are `ExportedReceipt`. */
  export: exportRequest({ notificationId: NotificationId.optional() }),
});
