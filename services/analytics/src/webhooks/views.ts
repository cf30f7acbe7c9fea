import type { Webhook, WebhookMessage, WebhookMessageDetail } from "@herald/contracts";
import type { WebhookMessageDocument } from "./webhook-message-document.ts";
import type { WebhookDocument } from "./webhook-store.ts";

const optional = <Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } =>
  (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };

/** A webhook as the interface shows it: never its secrets. */
export const webhookView = (webhook: WebhookDocument, now: Date): Webhook => {
  const { disabled, previousUntil } = webhook;
  return {
    id: webhook._id,
    url: webhook.url,
    events: webhook.events === null ? null : [...webhook.events],
    ...optional("description", webhook.description),
    enabled: disabled === undefined,
    ...optional("disabled_reason", disabled?.reason),
    ...optional("disabled_at", disabled?.at.toISOString()),
    ...optional("failing_since", webhook.failingSince?.toISOString()),
    ...optional(
      "previous_secret_until",
      previousUntil !== undefined && previousUntil > now ? previousUntil.toISOString() : undefined,
    ),
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
  ...optional("last_error", message.error),
  ...optional("next_attempt_at", message.state === "waiting" ? message.dueAt?.toISOString() : undefined),
});

export const messageDetailView = (message: WebhookMessageDocument): WebhookMessageDetail => ({
  ...messageView(message),
  payload: JSON.parse(message.payload),
  attempts: message.attempts.map(({ at, durationMs, status, error, response }) => ({
    at: at.toISOString(),
    duration_ms: durationMs,
    ...optional("status", status),
    ...optional("error", error),
    ...optional("response", response),
  })),
});
