import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  GetWebhookMessage,
  ListWebhookMessages,
  PingWebhook,
  type ProjectId,
  RecoverWebhookRequest,
  ResendWebhookMessage,
  type WebhookId,
  type WebhookMessageId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { messageDetailView, messageView } from "./views.ts";
import { webhookPayload } from "./webhook-message.ts";
import type { WebhookMessageDocument } from "./webhook-message-document.ts";
import type { WebhookMessageStore } from "./webhook-message-store.ts";
import { existing } from "./webhook-requests.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import type { WebhookStore } from "./webhook-store.ts";

/** One question's worth: whoever asks waits for it. */
const recoverPage = 1_000;
const recoverPages = 10;

const found = (message: WebhookMessageDocument | null): WebhookMessageDocument => {
  if (message === null)
    throw new HeraldError(
      "webhook-message-not-found",
      "message: the webhook has no such message; they are kept for 30 days",
    );
  return message;
};

/** Answers what is asked about the messages of a webhook, and has them sent again. */
export const answerWebhookMessages = (
  bus: Bus,
  {
    webhooks,
    messages,
    sender,
    now,
  }: { webhooks: WebhookStore; messages: WebhookMessageStore; sender: WebhookSender; now: () => Date },
): RequestListener[] => {
  const get = async (projectId: ProjectId, webhookId: WebhookId) => existing(await webhooks.find(projectId, webhookId));
  const getEnabled = async (projectId: ProjectId, webhookId: WebhookId) => {
    if ((await get(projectId, webhookId)).disabled !== undefined)
      throw new HeraldError("webhook-disabled", "webhook: is disabled; PATCH it with `enabled: true` first");
  };
  const getMessage = async (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId) =>
    found(await messages.find(projectId, webhookId, id));

  return [
    handleRequest(bus, ListWebhookMessages, async ({ projectId, webhookId, status, page }) => {
      await get(projectId, webhookId);
      const rows = await messages.list(projectId, webhookId, status, page);
      return { ...rows, data: rows.data.map(messageView) };
    }),
    handleRequest(bus, GetWebhookMessage, async ({ projectId, webhookId, messageId }) => {
      await get(projectId, webhookId);
      return messageDetailView(await getMessage(projectId, webhookId, messageId));
    }),
    handleRequest(bus, PingWebhook, async ({ projectId, webhookId, messageId }) => {
      await getEnabled(projectId, webhookId);
      const at = now();
      const type = "io.herald.webhook.ping.v1";
      const payload = webhookPayload({
        id: messageId,
        type,
        at,
        data: { project_id: projectId, webhook_id: webhookId, at: at.toISOString() },
      });
      const ping = { _id: messageId, projectId, webhookId, eventId: messageId, type, at, payload, once: true } as const;
      await messages.put([ping], at);
      sender.wake(projectId, webhookId);
      return messageView(await getMessage(projectId, webhookId, messageId));
    }),
    handleRequest(bus, ResendWebhookMessage, async ({ projectId, webhookId, messageId }) => {
      await getEnabled(projectId, webhookId);
      const message = found(await messages.again(projectId, webhookId, messageId, now()));
      sender.wake(projectId, webhookId);
      return messageView(message);
    }),
    handleRequest(bus, RecoverWebhookRequest, async ({ projectId, webhookId, since }) => {
      await getEnabled(projectId, webhookId);
      const range = { since: new Date(since), limit: recoverPage, now: now() };
      let recovered = 0;
      let more = true;
      for (let page = 0; more && page < recoverPages; page++) {
        const taken = await messages.recoverPage(projectId, webhookId, range);
        recovered += taken;
        more = taken === recoverPage;
      }
      sender.wake(projectId, webhookId);
      return { messages: recovered, more };
    }),
  ];
};
