import type { Webhook, WebhookMessage, WebhookMessageDetail } from "@herald/contracts";
import type { WebhookMessageDocument } from "./webhook-message-store.ts";
import type { WebhookDocument } from "./webhook-store.ts";

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
