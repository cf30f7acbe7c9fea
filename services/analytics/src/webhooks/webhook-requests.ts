import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  type ProjectId,
  type Webhook,
  type WebhookId,
  type WebhookMessage,
  type WebhookMessageDetail,
  type WebhookMessageId,
  webhookMessageRequests,
  webhookRequests,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import { newWebhookSecret } from "./webhook-attempt.ts";
import type { CheckUrl } from "./webhook-client.ts";
import { newWebhookMessage } from "./webhook-message.ts";
import type { WebhookMessageDocument, WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

/** Never contains the secrets. */
const webhookView = (webhook: WebhookDocument, now: Date): Webhook => {
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

const messageView = (message: Omit<WebhookMessageDocument, "payload" | "attempts">): WebhookMessage => ({
  id: message._id,
  event_id: message.eventId,
  type: message.type,
  timestamp: message.at.toISOString(),
  status: message.state,
  attempt_count: message.attemptCount,
  ...(message.error !== undefined && { last_error: message.error }),
  ...(message.state === "waiting" && message.dueAt && { next_attempt_at: message.dueAt.toISOString() }),
});

const messageDetailView = (message: WebhookMessageDocument): WebhookMessageDetail => ({
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

const webhookNotFound = () => notFound("webhook-not-found", "id");
const messageNotFound = () => notFound("webhook-message-not-found", "message", "messages are kept for 30 days");

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
  const get = async (projectId: ProjectId, id: WebhookId) =>
    existing(await webhooks.find(projectId, id), webhookNotFound);
  const getEnabled = async (projectId: ProjectId, id: WebhookId) => {
    if ((await get(projectId, id)).disabled !== undefined)
      throw new HeraldError("webhook-disabled", "webhook: is disabled; PATCH it with `enabled: true` first");
  };
  const getMessage = async (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId) =>
    existing(await messages.find(projectId, webhookId, id), messageNotFound);

  return [
    handleRequest(bus, webhookRequests.create, async ({ projectId, webhookId, settings }) => {
      await check(settings.url);
      if ((await webhooks.count(projectId)) >= maxWebhooks && (await webhooks.find(projectId, webhookId)) === null)
        throw new HeraldError("webhook-limit", `webhooks: at most ${maxWebhooks} are accepted in a project`);
      const secret = newWebhookSecret();
      const all = { ...settings, events: settings.events ?? null };
      const webhook = existing(await webhooks.create(projectId, webhookId, all, secret, now()), webhookNotFound);
      return { webhook: view(webhook), secret };
    }),
    handleRequest(bus, webhookRequests.list, async ({ projectId, page }) =>
      mapPage(await webhooks.list(projectId, page), view),
    ),
    handleRequest(bus, webhookRequests.get, async ({ projectId, webhookId }) => view(await get(projectId, webhookId))),
    handleRequest(bus, webhookRequests.change, async ({ projectId, webhookId, change: { enabled, ...settings } }) => {
      await get(projectId, webhookId);
      await check(settings.url);
      const changing = webhooks.change(projectId, webhookId, { settings, enabled }, now());
      const changed = existing(await changing, webhookNotFound);
      sender.sendNow(projectId, webhookId);
      return view(changed);
    }),
    handleRequest(bus, webhookRequests.delete, async ({ projectId, webhookId }) => {
      if (!(await webhooks.remove(projectId, webhookId))) throw webhookNotFound();
      // The worker finds no webhook and removes its messages.
      sender.sendNow(projectId, webhookId);
      return {};
    }),
    handleRequest(bus, webhookRequests.rotate, async ({ projectId, webhookId, rotationId }) => {
      const secret = newWebhookSecret();
      const previousUntil = new Date(now().getTime() + rotationMs);
      const rotating = webhooks.rotate(projectId, webhookId, { secret, previousUntil, rotationId }, now());
      return { webhook: view(existing(await rotating, webhookNotFound)), secret };
    }),
    handleRequest(bus, webhookMessageRequests.list, async ({ projectId, webhookId, status, page }) => {
      await get(projectId, webhookId);
      return mapPage(await messages.list(projectId, webhookId, status, page), messageView);
    }),
    handleRequest(bus, webhookMessageRequests.get, async ({ projectId, webhookId, messageId }) => {
      await get(projectId, webhookId);
      return messageDetailView(await getMessage(projectId, webhookId, messageId));
    }),
    handleRequest(bus, webhookRequests.ping, async ({ projectId, webhookId, messageId }) => {
      await getEnabled(projectId, webhookId);
      const at = now();
      const data = { project_id: projectId, webhook_id: webhookId, at: at.toISOString() };
      const event = { projectId, id: messageId, type: "io.herald.webhook.ping.v1", at, publishedAt: at, data };
      const ping = {
        ...newWebhookMessage({ _id: webhookId, projectId }, event),
        _id: messageId,
        isTest: true,
      } as const;
      await messages.put([ping], at);
      sender.sendNow(projectId, webhookId);
      return messageView(await getMessage(projectId, webhookId, messageId));
    }),
    handleRequest(bus, webhookMessageRequests.resend, async ({ projectId, webhookId, messageId }) => {
      await getEnabled(projectId, webhookId);
      const message = existing(await messages.resend(projectId, webhookId, messageId, now()), messageNotFound);
      sender.sendNow(projectId, webhookId);
      return messageView(message);
    }),
    handleRequest(bus, webhookRequests.recover, async ({ projectId, webhookId, since }) => {
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
