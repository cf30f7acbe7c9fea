import type { ProjectId, WebhookId } from "@herald/contracts";
import { retryAfterMs } from "@herald/kit";
import type { Post } from "./webhook-client.ts";
import type { AttemptDocument, WebhookMessageDocument } from "./webhook-message-document.ts";
import type { WebhookMessageStore } from "./webhook-message-store.ts";
import { judgePost, type PostResult } from "./webhook-outcome.ts";
import { longestFailureMs, nextWebhookAttempt } from "./webhook-schedule.ts";
import { webhookSignature } from "./webhook-signature.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

/** Sends a claimed message once, and notes what came of it. Rejects, with nothing noted, when `signal` is aborted. */
export type SendMessage = (
  webhook: WebhookDocument,
  message: WebhookMessageDocument,
  signal: AbortSignal,
) => Promise<void>;

type Needs = {
  readonly webhooks: WebhookStore;
  readonly messages: WebhookMessageStore;
  readonly post: Post;
  /** Publishes what is in a webhook's outbox. */
  readonly flush: (projectId: ProjectId, id: WebhookId) => Promise<void>;
  readonly now: () => Date;
  readonly random: () => number;
};

const userAgent = "Herald-Webhooks/1";

export const createSendMessage = ({ webhooks, messages, post, flush, now, random }: Needs): SendMessage => {
  const headersFor = async (webhook: WebhookDocument, { _id: id, payload: body }: WebhookMessageDocument, at: Date) => {
    const timestamp = Math.floor(at.getTime() / 1_000);
    const secrets = await webhooks.secretsAt(webhook, at);
    return {
      "content-type": "application/json",
      "user-agent": userAgent,
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": webhookSignature(secrets, { id, timestamp, body }),
    };
  };

  const disable = async (webhook: WebhookDocument, why: Parameters<WebhookStore["disable"]>[1]) => {
    if (await webhooks.disable(webhook, why, now())) await flush(webhook.projectId, webhook._id);
  };

  const noteFailure = async (webhook: WebhookDocument, at: Date) => {
    const { _id, projectId, failingSince } = webhook;
    if (failingSince === undefined) await webhooks.failing(projectId, _id, at);
    else if (at.getTime() - failingSince.getTime() >= longestFailureMs)
      await disable(webhook, { reason: "failing", since: failingSince });
  };

  const note = async (
    webhook: WebhookDocument,
    message: WebhookMessageDocument,
    result: PostResult,
    timing: Pick<AttemptDocument, "at" | "durationMs">,
  ) => {
    const verdict = judgePost(result);
    const attempt: AttemptDocument = {
      ...timing,
      ...(result.kind === "answered" ? { status: result.status } : {}),
      ...(result.kind === "answered" && result.body !== "" ? { response: result.body } : {}),
      ...(verdict.kind === "delivered" ? {} : { error: verdict.error }),
    };
    if (verdict.kind === "delivered") {
      await messages.delivered(message, attempt);
      if (webhook.failingSince !== undefined) await webhooks.succeeded(webhook.projectId, webhook._id);
      return;
    }
    const again = verdict.kind === "failed" && message.once === undefined;
    const next = again
      ? nextWebhookAttempt({
          attempts: message.round + 1,
          now: now(),
          retryAfterMs: result.kind === "answered" ? retryAfterMs(result.retryAfter, now()) : undefined,
          random: random(),
        })
      : undefined;
    await messages.notDelivered(message, attempt, verdict.error, next);
    if (verdict.kind === "gone") await disable(webhook, { reason: "gone", url: webhook.url });
    // A test that fails says nothing about the days before.
    else if (message.once === undefined) await noteFailure(webhook, timing.at);
  };

  return async (webhook, message, signal) => {
    const at = now();
    const headers = await headersFor(webhook, message, at);
    const begun = performance.now();
    const result = await post.send(webhook.url, headers, message.payload, signal);
    await note(webhook, message, result, { at, durationMs: Math.round(performance.now() - begun) });
  };
};
