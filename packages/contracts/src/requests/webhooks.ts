import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { isDeepPage, ListRequest, PageRequest, pageOf } from "../http/v1/pagination.ts";
import {
  ChangeWebhook,
  CreateWebhook,
  Recovered,
  Webhook,
  WebhookMessage,
  WebhookMessageDetail,
  WebhookMessageStatus,
} from "../http/v1/webhooks.ts";
import { ProjectId, WebhookId, WebhookMessageId } from "../ids.ts";

const project = { projectId: ProjectId };
const webhook = { ...project, webhookId: WebhookId };
const message = { ...webhook, messageId: WebhookMessageId };
/** With the secret, `whsec_…`, which is shown this once. */
const withSecret = z.object({ webhook: Webhook, secret: z.string() });

/** The gateway makes the id, so that a repeated request makes the same webhook, with a secret that replaces the unseen one. */
export const CreateWebhookRequest = defineRequest(
  "analytics.webhooks.create",
  z.object({ ...webhook, settings: CreateWebhook.shape.webhook }),
  withSecret,
);
export const ListWebhooks = defineRequest(
  "analytics.webhooks.list",
  z.object({ ...project, page: ListRequest }),
  pageOf(Webhook),
  isDeepPage,
);
export const GetWebhook = defineRequest("analytics.webhooks.get", z.object(webhook), Webhook);
export const ChangeWebhookRequest = defineRequest(
  "analytics.webhooks.change",
  z.object({ ...webhook, change: ChangeWebhook.shape.webhook }),
  Webhook,
);
export const DeleteWebhook = defineRequest("analytics.webhooks.delete", z.object(webhook), z.object({}));
/**
 * Makes a new secret; the one before stays good for a day, the one before that ends. A repeat under the same `rotationId`
 * replaces the secret that was never returned, and revokes none.
 */
export const RotateWebhookSecret = defineRequest(
  "analytics.webhooks.rotate",
  z.object({ ...webhook, rotationId: z.string() }),
  withSecret,
);

/** Sends a test message. The gateway makes its id. */
export const PingWebhook = defineRequest("analytics.webhooks.ping", z.object(message), WebhookMessage);
/** Makes what failed since a time wait again, the oldest first, up to 10,000 at a time. */
export const RecoverWebhookRequest = defineRequest(
  "analytics.webhooks.recover",
  z.object({ ...webhook, since: z.iso.datetime() }),
  Recovered,
);

export const ListWebhookMessages = defineRequest(
  "analytics.webhook-messages.list",
  z.object({ ...webhook, status: WebhookMessageStatus.optional(), page: PageRequest }),
  pageOf(WebhookMessage),
  isDeepPage,
);
export const GetWebhookMessage = defineRequest(
  "analytics.webhook-messages.get",
  z.object(message),
  WebhookMessageDetail,
);
/** Sends a message at once, whatever its status, and retries it on the schedule when that fails. */
export const ResendWebhookMessage = defineRequest(
  "analytics.webhook-messages.resend",
  z.object(message),
  WebhookMessage,
);
