import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeWebhookRequest,
  CreateWebhookRequest,
  DeleteWebhook,
  GetWebhook,
  ListWebhooks,
  RotateWebhookSecret,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { CheckUrl } from "./check-url.ts";
import { webhookView } from "./views.ts";
import type { WebhookSender } from "./webhook-sender.ts";
import { newWebhookSecret } from "./webhook-signature.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

/** Each event is stored once for each webhook that hears of it. */
const maxWebhooks = 20;
/** For so long after a rotation the receiver may still know the old secret alone. */
const rotationMs = 86_400_000;

export const noWebhook = () => new HeraldError("webhook-not-found", "id: the project has no such webhook");

/** The webhook, or the error that says that there is none. */
export const existing = (webhook: WebhookDocument | null | undefined): WebhookDocument => {
  if (webhook === null || webhook === undefined) throw noWebhook();
  return webhook;
};

/** Answers what is asked and told about the webhooks of a project. */
export const answerWebhooks = (
  bus: Bus,
  {
    webhooks,
    sender,
    checkUrl,
    now,
  }: { webhooks: WebhookStore; sender: WebhookSender; checkUrl: CheckUrl; now: () => Date },
): RequestListener[] => {
  const view = (webhook: WebhookDocument) => webhookView(webhook, now());
  const check = async (url: string | undefined) => {
    const problem = url === undefined ? undefined : await checkUrl(url);
    if (problem !== undefined) throw new HeraldError("validation-failed", `webhook.url: ${problem}`);
  };

  return [
    handleRequest(bus, CreateWebhookRequest, async ({ projectId, webhookId, settings }) => {
      await check(settings.url);
      if ((await webhooks.count(projectId)) >= maxWebhooks && (await webhooks.find(projectId, webhookId)) === null)
        throw new HeraldError("webhook-limit", `webhooks: at most ${maxWebhooks} are accepted in a project`);
      const { url, events = null, description } = settings;
      const secret = newWebhookSecret();
      const all = { url, events, ...(description === undefined ? {} : { description }) };
      const webhook = existing(await webhooks.create(projectId, webhookId, all, secret, now()));
      return { webhook: view(webhook), secret };
    }),
    handleRequest(bus, ListWebhooks, async ({ projectId, page }) => {
      const found = await webhooks.list(projectId, page);
      return { ...found, data: found.data.map(view) };
    }),
    handleRequest(bus, GetWebhook, async ({ projectId, webhookId }) =>
      view(existing(await webhooks.find(projectId, webhookId))),
    ),
    handleRequest(bus, ChangeWebhookRequest, async ({ projectId, webhookId, change: { enabled, ...change } }) => {
      existing(await webhooks.find(projectId, webhookId));
      await check(change.url);
      const settings = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
      const changed = existing(await webhooks.change(projectId, webhookId, { settings, enabled }, now()));
      sender.wake(projectId, webhookId);
      return view(changed);
    }),
    handleRequest(bus, DeleteWebhook, async ({ projectId, webhookId }) => {
      if (!(await webhooks.remove(projectId, webhookId))) throw noWebhook();
      // The lane finds no webhook, and removes its messages.
      sender.wake(projectId, webhookId);
      return {};
    }),
    handleRequest(bus, RotateWebhookSecret, async ({ projectId, webhookId, rotationId }) => {
      const secret = newWebhookSecret();
      const previousUntil = new Date(now().getTime() + rotationMs);
      const webhook = existing(
        await webhooks.rotate(projectId, webhookId, { secret, previousUntil, rotationId }, now()),
      );
      return { webhook: view(webhook), secret };
    }),
  ];
};
