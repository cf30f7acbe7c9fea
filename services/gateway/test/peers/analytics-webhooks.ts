import {
  type ProjectId,
  type Webhook,
  type WebhookId,
  type WebhookMessage,
  webhookMessageRequests,
  webhookRequests,
} from "@herald/contracts";
import { at, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

type Named = { readonly projectId: ProjectId; readonly webhookId: WebhookId };

/** Analytics' webhooks, without any sending. */
export const serveWebhooks = (serve: Serve): void => {
  const webhooks = new Map<string, Owned<Webhook>>();
  const messages = new Map<string, Owned<WebhookMessage>>();
  let secrets = 0;
  const newSecret = () => `whsec_${Buffer.from(`secret ${secrets++}`).toString("base64")}`;
  const find = (named: Named) => owned(webhooks, named, named.webhookId, "webhook-not-found");
  const message = (named: Named, id: string) => {
    find(named);
    return owned(messages, named, id, "webhook-message-not-found").value;
  };

  serve(webhookRequests.create, ({ projectId, webhookId, settings: { url, events = null } }) => {
    const value = { id: webhookId, url, events, enabled: true, created_at: at(), updated_at: at() };
    webhooks.set(webhookId, { projectId, value });
    return { webhook: value, secret: newSecret() };
  });
  serve(webhookRequests.list, ({ projectId, page }) => pageOf(rows(webhooks, projectId), page));
  serve(webhookRequests.get, (named) => find(named).value);
  serve(webhookRequests.change, ({ change, ...named }) => {
    const row = find(named);
    const { url = row.value.url, enabled = row.value.enabled } = change;
    row.value = { ...row.value, url, enabled };
    return row.value;
  });
  serve(webhookRequests.delete, (named) => {
    find(named);
    webhooks.delete(named.webhookId);
    return {};
  });
  serve(webhookRequests.rotate, (named) => ({ webhook: find(named).value, secret: newSecret() }));
  serve(webhookRequests.ping, ({ messageId, ...named }) => {
    find(named);
    const common = {
      event_id: messageId,
      type: "io.herald.webhook.ping.v1",
      timestamp: at(),
      status: "waiting",
    } as const;
    const value = { id: messageId, ...common, attempt_count: 0 };
    messages.set(messageId, { projectId: named.projectId, value });
    return value;
  });
  serve(webhookRequests.recover, (named) => {
    find(named);
    return { messages: 0, more: false };
  });
  serve(webhookMessageRequests.list, (named) => {
    find(named);
    return pageOf(rows(messages, named.projectId), named.page);
  });
  serve(webhookMessageRequests.get, ({ messageId, ...named }) => {
    const shown = message(named, messageId);
    const { event_id: id, type, timestamp } = shown;
    return { ...shown, payload: { id, type, timestamp, data: {} }, attempts: [] };
  });
  serve(webhookMessageRequests.resend, ({ messageId, ...named }) => message(named, messageId));
};
