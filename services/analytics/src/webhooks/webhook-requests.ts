import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeWebhookRequest,
  CreateWebhookRequest,
  DeleteWebhook,
  GetWebhook,
  GetWebhookMessage,
  ListWebhookMessages,
  ListWebhooks,
  PingWebhook,
  type ProjectId,
  RecoverWebhookRequest,
  ResendWebhookMessage,
  RotateWebhookSecret,
  type Webhook,
  type WebhookId,
  type WebhookMessage,
  type WebhookMessageDetail,
  type WebhookMessageId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { newWebhookSecret } from "./webhook-attempt.ts";
import type { CheckUrl } from "./webhook-client.ts";
import { webhookPayload } from "./webhook-message.ts";
import type { WebhookMessageDocument, WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

/** Never contains the secrets. */
export const webhookView = (webhook: WebhookDocument, now: Date): Webhook => {
  const { description, disabled, failingSince, previousUntil } = webhook;
  return {
    id: webhook._id,
    url: webhook.url,
    events: webhook.events === null ? null : [...webhook.events],
    ...(description !== undefined && { description }),
    enabled: disabled === undefined,
    ...(disabled && { disabled_reason: disabled.reason, disabled_at: disabled.at.toISOString() }),
    ...(failingSince && { failing_since: failingSince.toISOString() }),
    ...(previousUntil && previousUntil > now && { previous_secret_until: previousUntil.toISOString() }),
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
  };
};

export const messageView = (message: Omit<WebhookMessageDocument, "payload" | "attempts">): WebhookMessage => ({
  id: message._id,
  event_id: message.eventId,
  type: message.type,
  timestamp: message.at.toISOString(),
  status: message.state,
  attempt_count: message.attemptCount,
  ...(message.error !== undefined && { last_error: message.error }),
  ...(message.state === "waiting" && message.dueAt && { next_attempt_at: message.dueAt.toISOString() }),
});

export const messageDetailView = (message: WebhookMessageDocument): WebhookMessageDetail => ({
  ...messageView(message),
  payload: JSON.parse(message.payload),
  attempts: message.attempts.map(({ at, durationMs, ...rest }) => ({
    at: at.toISOString(),
    duration_ms: durationMs,
    ...rest,
  })),
});

/** Each event is stored once for each subscribed webhook. */
const maxWebhooks = 20;
/** How long the previous secret signs too after a rotation. */
const rotationMs = 86_400_000;
/** One request recovers at most `recoverPage` × `recoverPages` messages: its caller waits for it. */
const recoverPage = 1_000;
const recoverPages = 10;

const requireWebhook = (webhook: WebhookDocument | null | undefined): WebhookDocument => {
  if (!webhook) throw new HeraldError("webhook-not-found", "id: the project has no such webhook");
  return webhook;
};

const requireMessage = (message: WebhookMessageDocument | null): WebhookMessageDocument => {
  if (message === null)
    throw new HeraldError(
      "webhook-message-not-found",
      "message: the webhook has no such message; they are kept for 30 days",
    );
  return message;
};

type Deps = {
  readonly webhooks: WebhookStore;
  readonly messages: WebhookMessageStore;
  readonly sender: WebhookSender;
  readonly checkUrl: CheckUrl;
  readonly now: () => Date;
};

export const handleWebhookRequests = (bus: Bus, deps: Deps): RequestListener[] => {
  const { webhooks, messages, sender, checkUrl, now } = deps;
  const view = (webhook: WebhookDocument) => webhookView(webhook, now());
  const check = async (url: string | undefined) => {
    const problem = url === undefined ? undefined : await checkUrl(url);
    if (problem !== undefined) throw new HeraldError("validation-failed", `webhook.url: ${problem}`);
  };
  const get = async (projectId: ProjectId, id: WebhookId) => requireWebhook(await webhooks.find(projectId, id));
  const getEnabled = async (projectId: ProjectId, id: WebhookId) => {
    if ((await get(projectId, id)).disabled !== undefined)
      throw new HeraldError("webhook-disabled", "webhook: is disabled; PATCH it with `enabled: true` first");
  };
  const getMessage = async (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId) =>
    requireMessage(await messages.find(projectId, webhookId, id));

  return [
    handleRequest(bus, CreateWebhookRequest, async ({ projectId, webhookId, settings }) => {
      await check(settings.url);
      if ((await webhooks.count(projectId)) >= maxWebhooks && (await webhooks.find(projectId, webhookId)) === null)
        throw new HeraldError("webhook-limit", `webhooks: at most ${maxWebhooks} are accepted in a project`);
      const { url, events = null, description } = settings;
      const secret = newWebhookSecret();
      const all = { url, events, ...(description === undefined ? {} : { description }) };
      const webhook = requireWebhook(await webhooks.create(projectId, webhookId, all, secret, now()));
      return { webhook: view(webhook), secret };
    }),
    handleRequest(bus, ListWebhooks, async ({ projectId, page }) => {
      const found = await webhooks.list(projectId, page);
      return { ...found, data: found.data.map(view) };
    }),
    handleRequest(bus, GetWebhook, async ({ projectId, webhookId }) => view(await get(projectId, webhookId))),
    handleRequest(bus, ChangeWebhookRequest, async ({ projectId, webhookId, change: { enabled, ...change } }) => {
      await get(projectId, webhookId);
      await check(change.url);
      const settings = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
      const changed = requireWebhook(await webhooks.change(projectId, webhookId, { settings, enabled }, now()));
      sender.sendNow(projectId, webhookId);
      return view(changed);
    }),
    handleRequest(bus, DeleteWebhook, async ({ projectId, webhookId }) => {
      if (!(await webhooks.remove(projectId, webhookId))) requireWebhook(null);
      // The worker finds no webhook and removes its messages.
      sender.sendNow(projectId, webhookId);
      return {};
    }),
    handleRequest(bus, RotateWebhookSecret, async ({ projectId, webhookId, rotationId }) => {
      const secret = newWebhookSecret();
      const previousUntil = new Date(now().getTime() + rotationMs);
      const webhook = requireWebhook(
        await webhooks.rotate(projectId, webhookId, { secret, previousUntil, rotationId }, now()),
      );
      return { webhook: view(webhook), secret };
    }),
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
      const ping = {
        _id: messageId,
        projectId,
        webhookId,
        eventId: messageId,
        type,
        at,
        payload,
        isTest: true,
      } as const;
      await messages.put([ping], at);
      sender.sendNow(projectId, webhookId);
      return messageView(await getMessage(projectId, webhookId, messageId));
    }),
    handleRequest(bus, ResendWebhookMessage, async ({ projectId, webhookId, messageId }) => {
      await getEnabled(projectId, webhookId);
      const message = requireMessage(await messages.resend(projectId, webhookId, messageId, now()));
      sender.sendNow(projectId, webhookId);
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
      sender.sendNow(projectId, webhookId);
      return { messages: recovered, more };
    }),
  ];
};
