import type { ProjectId, WebhookId } from "@herald/contracts";
import { retryAfterMs } from "@herald/kit";
import type { WebhookClient } from "./webhook-client.ts";
import type { AttemptDocument, WebhookMessageDocument, WebhookMessageStore } from "./webhook-message-store.ts";
import { outcomeOf, type WebhookResponse } from "./webhook-outcome.ts";
import { maxFailureMs, nextWebhookAttempt } from "./webhook-schedule.ts";
import { webhookSignature } from "./webhook-signature.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

/** Sends a claimed message once and stores the outcome. Rejects, and stores nothing, when `signal` is aborted. */
export type SendMessage = (
  webhook: WebhookDocument,
  message: WebhookMessageDocument,
  signal: AbortSignal,
) => Promise<void>;

type Deps = {
  readonly webhooks: WebhookStore;
  readonly messages: WebhookMessageStore;
  readonly client: WebhookClient;
  /** Publishes the outbox of a webhook. */
  readonly flush: (projectId: ProjectId, id: WebhookId) => Promise<void>;
  readonly now: () => Date;
  readonly random: () => number;
};

export const createSendMessage = ({ webhooks, messages, client, flush, now, random }: Deps): SendMessage => {
  const headersFor = (secrets: readonly string[], id: string, body: string, at: Date) => {
    const timestamp = Math.floor(at.getTime() / 1_000);
    return {
      "content-type": "application/json",
      "user-agent": "Herald-Webhooks/1",
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": webhookSignature(secrets, { id, timestamp, body }),
    };
  };

  const disable = async (webhook: WebhookDocument, why: Parameters<WebhookStore["disable"]>[1]) => {
    if (await webhooks.disable(webhook, why, now())) await flush(webhook.projectId, webhook._id);
  };

  const recordFailure = async (webhook: WebhookDocument, at: Date) => {
    const { _id, projectId, failingSince } = webhook;
    if (failingSince === undefined) await webhooks.recordFailure(projectId, _id, at);
    else if (at.getTime() - failingSince.getTime() >= maxFailureMs)
      await disable(webhook, { reason: "failing", since: failingSince });
  };

  const storeOutcome = async (
    webhook: WebhookDocument,
    message: WebhookMessageDocument,
    response: WebhookResponse,
    timing: Pick<AttemptDocument, "at" | "durationMs">,
  ) => {
    const outcome = outcomeOf(response);
    const answer = response.kind === "answered" ? response : undefined;
    const attempt: AttemptDocument = {
      ...timing,
      ...(answer && { status: answer.status }),
      ...(answer?.body && { response: answer.body }),
      ...(outcome.kind !== "delivered" && { error: outcome.error }),
    };
    if (outcome.kind === "delivered") {
      await messages.markDelivered(message, attempt);
      if (webhook.failingSince !== undefined) await webhooks.recordSuccess(webhook.projectId, webhook._id);
      return;
    }
    const next =
      outcome.kind === "failed" && !message.isTest
        ? nextWebhookAttempt({
            attempts: message.scheduleAttempts + 1,
            now: now(),
            retryAfterMs: answer && retryAfterMs(answer.retryAfter, now()),
            random: random(),
          })
        : undefined;
    await messages.markFailed(message, attempt, outcome.error, next);
    if (outcome.kind === "gone") await disable(webhook, { reason: "gone", url: webhook.url });
    else if (!message.isTest) await recordFailure(webhook, timing.at);
  };

  return async (webhook, message, signal) => {
    const { _id: id, payload } = message;
    const at = now();
    const headers = headersFor(await webhooks.secretsAt(webhook, at), id, payload, at);
    const begun = performance.now();
    const response = await client.post(webhook.url, headers, payload, signal);
    await storeOutcome(webhook, message, response, { at, durationMs: Math.round(performance.now() - begun) });
  };
};
