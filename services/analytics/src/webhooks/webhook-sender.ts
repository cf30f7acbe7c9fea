import { randomUUID } from "node:crypto";
import type { ProjectId, WebhookId } from "@herald/contracts";
import { createShares, type Logger } from "@herald/kit";
import type { SendMessage } from "./send-message.ts";
import type { WebhookMessageDocument } from "./webhook-message-document.ts";
import type { WebhookMessageStore } from "./webhook-message-store.ts";
import type { WebhookDocument, WebhookStore } from "./webhook-store.ts";

export type WebhookSender = {
  start(): void;
  /** Has what waits for a webhook sent, now instead of at the next look. */
  wake(projectId: ProjectId, id: WebhookId): void;
  /** Looks once for webhooks that have something due, and wakes them. */
  look(): Promise<void>;
  /** Takes nothing more and lets what is under way end; what is not answered by the deadline is sent again by whoever comes next. */
  stop(deadlineMs: number): Promise<void>;
};

type Options = {
  readonly webhooks: WebhookStore;
  readonly messages: WebhookMessageStore;
  readonly send: SendMessage;
  /** Longer than a request may take: who claimed a message and has not noted anything by then is dead. */
  readonly claimMs: number;
  readonly now: () => Date;
  readonly log: Logger;
  readonly lookEveryMs?: number;
};

/** Requests to one webhook at a time, by this process; one alone while it fails, so that nobody is beaten while down. */
const perWebhook = 8;
/** Requests in all, of which a project has its share however many of its webhooks never answer: sockets and bodies of some KB. */
const inAll = 512;
/** The first retry comes after five seconds, so this is soon enough. */
const usualLookMs = 1_000;

type Lane = {
  /** Something was stored since the lane last looked. */
  again: boolean;
  /** Ends the wait for an answer: there is more to send. */
  rouse: () => void;
};

/**
 * Sends what is due, a lane for each webhook: the database is the queue, so a slow receiver holds up its own messages alone, and
 * what a crash left is due again when its claim has run out.
 */
export const createWebhookSender = (options: Options): WebhookSender => {
  const { webhooks, messages, send, claimMs, now, log, lookEveryMs = usualLookMs } = options;
  const lanes = new Map<WebhookId, Lane & { readonly done: Promise<void> }>();
  const aborting = new AbortController();
  const shares = createShares(inAll);
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  let stopping = false;
  let failing = false;

  const complain = (err: unknown) => {
    // Once when it begins: while the database is unavailable, every look fails.
    if (!failing) log.warn({ err }, "webhooks will be sent later");
    failing = true;
  };

  const sendOne = async (webhook: WebhookDocument, message: WebhookMessageDocument) => {
    try {
      await send(webhook, message, aborting.signal);
      failing = false;
    } catch (error) {
      // What failed here, such as a missing master key, would fail again at once: it waits until the claim runs out.
      if (aborting.signal.aborted) await messages.release(message, now()).catch(() => {});
      else complain(error);
    }
  };

  const runLane = async (projectId: ProjectId, id: WebhookId, lane: Lane): Promise<void> => {
    const sending = new Set<Promise<void>>();
    const begin = (webhook: WebhookDocument, message: WebhookMessageDocument) => {
      const one = sendOne(webhook, message).finally(() => {
        shares.give(projectId, 1);
        sending.delete(one);
      });
      sending.add(one);
    };
    /** Claims what is due, as much as there are places for. They are taken first: another lane may claim at the same time. */
    const claimDue = async (width: number): Promise<WebhookMessageDocument[]> => {
      const limit = Math.max(0, Math.min(width - sending.size, shares.room(projectId)));
      if (limit === 0) return [];
      shares.take(projectId, limit);
      let claimed: WebhookMessageDocument[] = [];
      try {
        const at = now();
        const claim = { claim: randomUUID(), limit, now: at, until: new Date(at.getTime() + claimMs) };
        claimed = await messages.claim({ projectId, webhookId: id }, claim);
      } finally {
        shares.give(projectId, limit - claimed.length);
      }
      return claimed;
    };
    try {
      while (!stopping) {
        lane.again = false;
        const webhook = await webhooks.find(projectId, id);
        if (webhook === null) {
          while (!stopping && (await messages.removePage(projectId, id)));
          break;
        }
        if (webhook.disabled !== undefined) {
          while (!stopping && (await messages.giveUpPage(projectId, id, "the webhook was disabled")));
          break;
        }
        const width = webhook.failingSince === undefined ? perWebhook : 1;
        for (const message of await claimDue(width)) begin(webhook, message);
        if (sending.size === 0 && !lane.again) break;
        if (lane.again) continue;
        const roused = new Promise<void>((resolve) => {
          lane.rouse = resolve;
        });
        await Promise.race([...sending, roused]);
      }
    } finally {
      await Promise.all(sending);
    }
  };

  const wake = (projectId: ProjectId, id: WebhookId) => {
    if (stopping) return;
    const running = lanes.get(id);
    if (running !== undefined) {
      running.again = true;
      running.rouse();
      return;
    }
    const state: Lane = { again: false, rouse: () => {} };
    const done = runLane(projectId, id, state)
      .catch(complain)
      .finally(() => lanes.delete(id));
    lanes.set(id, Object.assign(state, { done }));
  };

  /** From webhook to webhook, one row of the index each: however much waits for one, it costs the others nothing. */
  const look = async () => {
    for (let after = ""; !stopping; ) {
      const found = await messages.nextWaiting(after);
      if (found === undefined) break;
      after = found.webhookId;
      if (found.dueAt !== undefined && found.dueAt <= now()) wake(found.projectId, found.webhookId);
    }
    failing = false;
  };

  const tick = () => {
    looking = look()
      .catch(complain)
      .then(() => {
        if (!stopping) timer = setTimeout(tick, lookEveryMs);
      });
  };

  return {
    start: () => {
      timer = setTimeout(tick, lookEveryMs);
    },
    wake,
    look,
    stop: async (deadlineMs) => {
      stopping = true;
      clearTimeout(timer);
      await looking;
      const deadline = setTimeout(() => aborting.abort(), deadlineMs);
      await Promise.all([...lanes.values()].map(({ done }) => done));
      clearTimeout(deadline);
    },
  };
};
