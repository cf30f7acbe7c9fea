import { randomUUID } from "node:crypto";
import type { ProjectId, WebhookId } from "@herald/contracts";
import { createShares, type Logger, parseRetryAfter } from "@herald/kit";
import {
  attemptOutcome,
  maxFailureMs,
  nextWebhookAttempt,
  type WebhookResponse,
  webhookSignature,
} from "./webhook-attempt.ts";
import type { WebhookClient } from "./webhook-client.ts";
import type { AttemptDocument, WebhookMessageDocument, WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

type Deps = {
  readonly webhooks: WebhookStore;
  readonly messages: WebhookMessageStore;
  readonly client: WebhookClient;
  /** Publishes the outbox of a webhook. */
  readonly flush: (projectId: ProjectId, id: WebhookId) => Promise<void>;
  /** Longer than a request may take: a process that stored no outcome by then is dead. */
  readonly claimMs: number;
  readonly now: () => Date;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly log: Logger;
  readonly pollIntervalMs?: number | undefined;
};

type SendMessageDeps = Pick<Deps, "client" | "flush" | "messages" | "now" | "random" | "webhooks">;

/** Sends a claimed message once and stores the outcome. Rejects, and stores nothing, when `signal` is aborted. */
const createSendMessage = ({ webhooks, messages, client, flush, now, random }: SendMessageDeps) => {
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
    const outcome = attemptOutcome(response, message.attempts.at(-1)?.status);
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
            retryAfterMs: answer && parseRetryAfter(answer.retryAfter, now()),
            random: random(),
          })
        : undefined;
    await messages.markFailed(message, attempt, outcome.error, next);
    if (outcome.kind === "gone") await disable(webhook, { reason: "gone", url: webhook.url });
    else if (!message.isTest) await recordFailure(webhook, timing.at);
  };

  return async (webhook: WebhookDocument, message: WebhookMessageDocument, signal: AbortSignal): Promise<void> => {
    const { _id: id, payload } = message;
    const at = now();
    const headers = headersFor(await webhooks.secretsAt(webhook, at), id, payload, at);
    const begun = performance.now();
    const response = await client.post(webhook.url, headers, payload, signal);
    await storeOutcome(webhook, message, response, { at, durationMs: Math.round(performance.now() - begun) });
  };
};

/** Concurrent requests of this process to one webhook; one while it fails. */
const maxPerWebhook = 8;
/** Concurrent requests in all, shared by project: a request holds a socket and a body of some KB. */
const maxRequests = 512;
/** The first retry is due after five seconds. */
const defaultPollMs = 1_000;

type Worker = {
  /** Messages may have become due since it last claimed. */
  rerun: boolean;
  /** Ends its wait for a response. */
  resume: () => void;
  readonly done: Promise<void>;
};

/**
 * Sends due messages by one worker per webhook. The database is the queue: a slow receiver delays only its own messages, and messages
 * that a crash left are due again when their claim ends.
 */
export const createWebhookSender = (deps: Deps) => {
  const { webhooks, messages, claimMs, now, log, pollIntervalMs = defaultPollMs } = deps;
  const send = createSendMessage(deps);
  const workers = new Map<WebhookId, Worker>();
  const aborting = new AbortController();
  const shares = createShares(maxRequests);
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> = Promise.resolve();
  let stopping = false;
  let failing = false;

  const warn = (err: unknown) => {
    // Logs once: while the database is unavailable, every poll fails.
    if (!failing) log.warn({ err }, "webhooks will be sent later");
    failing = true;
  };

  const sendOne = async (webhook: WebhookDocument, message: WebhookMessageDocument) => {
    try {
      await send(webhook, message, aborting.signal);
      failing = false;
    } catch (error) {
      // An internal error, such as a missing master key, would occur again at once: the message waits until its claim ends.
      if (aborting.signal.aborted) await messages.release(message, now()).catch(() => {});
      else warn(error);
    }
  };

  /** Takes the shares first, because other workers claim at the same time. */
  const claimDue = async (projectId: ProjectId, webhookId: WebhookId, max: number) => {
    const limit = Math.max(0, Math.min(max, shares.room(projectId)));
    if (limit === 0) return [];
    shares.take(projectId, limit);
    let claimed: WebhookMessageDocument[] = [];
    try {
      const at = now();
      const claim = { claim: randomUUID(), limit, now: at, until: new Date(at.getTime() + claimMs) };
      claimed = await messages.claim({ projectId, webhookId }, claim);
      return claimed;
    } finally {
      shares.give(projectId, limit - claimed.length);
    }
  };

  const runWorker = async (projectId: ProjectId, id: WebhookId, worker: Omit<Worker, "done">): Promise<void> => {
    const sending = new Set<Promise<void>>();
    try {
      while (!stopping) {
        worker.rerun = false;
        const webhook = await webhooks.find(projectId, id);
        if (webhook === null) {
          while (!stopping && (await messages.removeOfWebhook(projectId, id)));
          break;
        }
        if (webhook.disabled !== undefined) {
          while (!stopping && (await messages.failPage(projectId, id, "the webhook was disabled")));
          break;
        }
        const max = webhook.failingSince === undefined ? maxPerWebhook : 1;
        for (const message of await claimDue(projectId, id, max - sending.size)) {
          const one = sendOne(webhook, message).finally(() => {
            shares.give(projectId, 1);
            sending.delete(one);
          });
          sending.add(one);
        }
        if (worker.rerun) continue;
        if (sending.size === 0) break;
        const { promise: resumed, resolve } = Promise.withResolvers<void>();
        worker.resume = resolve;
        await Promise.race([...sending, resumed]);
      }
    } finally {
      await Promise.all(sending);
    }
  };

  const sendNow = (projectId: ProjectId, id: WebhookId) => {
    if (stopping) return;
    const running = workers.get(id);
    if (running !== undefined) {
      running.rerun = true;
      running.resume();
      return;
    }
    const state = { rerun: false, resume: () => {} };
    const done = runWorker(projectId, id, state)
      .catch(warn)
      .finally(() => workers.delete(id));
    workers.set(id, Object.assign(state, { done }));
  };

  /** Reads one index entry per webhook, however many of its messages wait. */
  const poll = async () => {
    for (let after = ""; !stopping; ) {
      const found = await messages.nextWaiting(after);
      if (found === undefined) break;
      after = found.webhookId;
      if (found.dueAt !== undefined && found.dueAt <= now()) sendNow(found.projectId, found.webhookId);
    }
    failing = false;
  };

  const schedulePoll = () => {
    timer = setTimeout(() => {
      polling = poll()
        .catch(warn)
        .then(() => {
          if (!stopping) schedulePoll();
        });
    }, pollIntervalMs);
  };

  return {
    start: schedulePoll,
    /** Sends the due messages of a webhook without waiting for the next poll. */
    sendNow,
    /** Claims nothing more and waits for requests in progress; after the deadline it aborts them, and they are sent again. */
    stop: async (deadlineMs: number): Promise<void> => {
      stopping = true;
      clearTimeout(timer);
      await polling;
      const deadline = setTimeout(() => aborting.abort(), deadlineMs);
      await Promise.all([...workers.values()].map(({ done }) => done));
      clearTimeout(deadline);
    },
  };
};

export type WebhookSender = ReturnType<typeof createWebhookSender>;
