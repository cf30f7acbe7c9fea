import {
  firstWebhookMessageId,
  type PageRequest,
  type ProjectId,
  UserErasedV1,
  type WebhookId,
  type WebhookMessageId,
  type WebhookMessageStatus,
} from "@herald/contracts";
import {
  anyOf,
  byIndex,
  createCounts,
  findByIds,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  projectRows,
  removeFirst,
  retentionBatch,
  retryConflicts,
} from "@herald/mongo";
import type { Collection, Db, Filter, FindOptions, UpdateFilter } from "mongodb";
import type { newWebhookMessage } from "./webhook-message.ts";

export type AttemptDocument = {
  readonly at: Date;
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
  readonly response?: string;
};

/** One event for one webhook. */
export type WebhookMessageDocument = {
  /** Derived from webhook and event, so that storing it again changes nothing. */
  readonly _id: WebhookMessageId;
  readonly projectId: ProjectId;
  readonly webhookId: WebhookId;
  readonly eventId: string;
  readonly type: string;
  /** When the event happened. */
  readonly at: Date;
  /** The body as it is posted and signed, to the byte. */
  readonly payload: string;
  readonly state: WebhookMessageStatus;
  /** When it is due; while claimed, when the claim ends. Only while it is waiting. */
  readonly dueAt?: Date;
  /** Id of the claim whose process is sending it. */
  readonly claim?: string;
  /** A ping: one attempt, and its failure does not disable the webhook. */
  readonly isTest?: true;
  /** Attempts since the schedule began; a resend restarts the schedule. */
  readonly scheduleAttempts: number;
  readonly attemptCount: number;
  /** The latest attempts. */
  readonly attempts: readonly AttemptDocument[];
  /** Error of the last attempt. */
  readonly error?: string;
  readonly expiresAt: Date;
};

/** Messages with a `failure` are not sent. */
type NewMessage = ReturnType<typeof newWebhookMessage> &
  Pick<WebhookMessageDocument, "isTest"> & { readonly failure?: string };

const indexes = {
  byWebhook: { fields: { projectId: 1, webhookId: 1, _id: 1 }, purpose: "list" },
  byState: { fields: { projectId: 1, webhookId: 1, state: 1, _id: 1 }, purpose: "list" },
  /** By webhook: finding the next webhook with waiting messages reads one entry. */
  waiting: { fields: { webhookId: 1, dueAt: 1 }, purpose: "send", partial: { state: "waiting" } },
  ending: { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 0 },
} as const satisfies Record<string, IndexSpec>;

/** As long as the events themselves are kept. */
const retentionMs = 30 * 86_400_000;
/** More than one schedule has, so that attempts before a resend stay visible. */
const maxStoredAttempts = 20;

/** A claimed message. The claim ends when another process claims it. */
type Claimed = Pick<WebhookMessageDocument, "_id" | "projectId" | "claim">;

/** Every function throws `database-unavailable` while the database is unavailable. */
export const createWebhookMessageStore = (db: Db) => {
  const messages: Collection<WebhookMessageDocument> = db.collection("webhookMessages");
  const counts = createCounts();

  /** Stores an attempt, and its outcome unless the claim was lost. */
  const recordAttempt = async (
    { _id, projectId, claim }: Claimed,
    attempt: AttemptDocument,
    { $set, $unset }: UpdateFilter<WebhookMessageDocument>,
  ): Promise<void> => {
    const attempts = { $each: [attempt], $slice: -maxStoredAttempts };
    const { matchedCount } = await messages.updateOne(
      { _id, projectId, ...(claim === undefined ? {} : { claim }) },
      {
        $push: { attempts },
        $inc: { attemptCount: 1, scheduleAttempts: 1 },
        ...($set && { $set }),
        $unset: { ...$unset, claim: "" },
      },
    );
    if (matchedCount === 0)
      await messages.updateOne({ _id, projectId }, { $push: { attempts }, $inc: { attemptCount: 1 } });
  };

  /** Changes the first messages that match, unless their state changes meanwhile. Resolves to how many were found. */
  const changePage = async (
    filter: Filter<WebhookMessageDocument>,
    options: FindOptions,
    update: UpdateFilter<WebhookMessageDocument>,
  ): Promise<number> => {
    const page = await messages.find(filter, { ...options, projection: { _id: 1 } }).toArray();
    const { projectId, state } = filter;
    const _id = anyOf(page.map((message) => message._id));
    if (page.length > 0) await messages.updateMany({ projectId, _id, state }, update);
    return page.length;
  };

  return guardStore({
    ...projectRows(messages, indexes, indexes.byWebhook),

    put: async (batch: readonly NewMessage[], now: Date): Promise<void> => {
      const documents = batch.map(
        ({ failure, ...message }): WebhookMessageDocument => ({
          ...message,
          ...(failure === undefined ? { state: "waiting", dueAt: now } : { state: "failed", error: failure }),
          scheduleAttempts: 0,
          attemptCount: 0,
          attempts: [],
          expiresAt: new Date(now.getTime() + retentionMs),
        }),
      );
      await insertMissing(messages, documents);
    },

    /** Replaces the payloads of messages about events up to `at`. A message about an erasure is replaced once it is sent. */
    rewrite: async (projectId: ProjectId, at: Date, change: (payload: string) => string): Promise<void> => {
      const all = messages.find(
        { projectId, at: { $lte: at } },
        { hint: indexName(indexes.byWebhook), projection: { projectId: 1, payload: 1, type: 1, state: 1 } },
      );
      for await (const { _id, payload, type, state } of all) {
        if (state === "waiting" && type === UserErasedV1.ceType) continue;
        const changed = change(payload);
        if (changed !== payload) await messages.updateOne({ _id, projectId }, { $set: { payload: changed } });
      }
    },

    find: (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId) =>
      messages.findOne({ _id: id, projectId, webhookId }),

    list: (projectId: ProjectId, webhookId: WebhookId, state: WebhookMessageStatus | undefined, request: PageRequest) =>
      findPage(messages, {
        filter: { projectId, webhookId, ...(state === undefined ? {} : { state }) },
        request,
        hint: indexName(state === undefined ? indexes.byWebhook : indexes.byState),
        projection: { payload: 0, attempts: 0 },
        counts,
      }),

    /** The next webhook after `after` with waiting messages, and when its first message is due. */
    nextWaiting: async (after: string) => {
      const [found] = await messages
        .find(
          { state: "waiting", webhookId: { $gt: after as WebhookId } },
          {
            hint: indexName(indexes.waiting),
            projection: { projectId: 1, webhookId: 1, dueAt: 1 },
            sort: { webhookId: 1, dueAt: 1 },
            limit: 1,
          },
        )
        .toArray();
      return found as Pick<WebhookMessageDocument, "projectId" | "webhookId" | "dueAt"> | undefined;
    },

    /** Claims due messages, oldest first, until `until`. */
    claim: async (
      { projectId, webhookId }: Pick<WebhookMessageDocument, "projectId" | "webhookId">,
      { claim, limit, now, until }: { claim: string; limit: number; now: Date; until: Date },
    ): Promise<WebhookMessageDocument[]> => {
      const due = await messages
        .find(
          { state: "waiting", webhookId, dueAt: { $lte: now } },
          { hint: indexName(indexes.waiting), projection: { dueAt: 1 }, sort: { webhookId: 1, dueAt: 1 }, limit },
        )
        .toArray();
      if (due.length === 0) return [];
      const writes = due
        .sort((one, other) => (one._id < other._id ? -1 : 1))
        .map(({ _id, dueAt }) => ({
          updateOne: {
            filter: { _id, projectId, state: "waiting" as const, ...(dueAt && { dueAt }) },
            update: { $set: { claim, dueAt: until } },
          },
        }));
      await retryConflicts(() => messages.bulkWrite(writes, { ordered: false }));
      const ids = due.map(({ _id }) => _id);
      return findByIds(messages, ids, { projectId, claim });
    },

    /** Releases a message that was claimed and not sent. */
    release: async ({ _id, projectId, claim }: Claimed, now: Date): Promise<void> => {
      if (claim === undefined) return;
      await messages.updateOne({ _id, projectId, claim }, { $set: { dueAt: now }, $unset: { claim: "" } });
    },

    markDelivered: (claimed: Claimed, attempt: AttemptDocument) =>
      recordAttempt(claimed, attempt, { $set: { state: "delivered" }, $unset: { dueAt: "", error: "" } }),

    /** `next`: when it is retried; undefined: it has failed for good. */
    markFailed: (claimed: Claimed, attempt: AttemptDocument, error: string, next: Date | undefined) =>
      recordAttempt(
        claimed,
        attempt,
        next === undefined
          ? { $set: { state: "failed", error }, $unset: { dueAt: "" } }
          : { $set: { dueAt: next, error } },
      ),

    /** Marks a page of waiting messages as failed. Resolves to how many. */
    failPage: (projectId: ProjectId, webhookId: WebhookId, error: string): Promise<number> =>
      changePage(
        { projectId, webhookId, state: "waiting" },
        { hint: indexName(indexes.waiting), limit: retentionBatch },
        { $set: { state: "failed", error }, $unset: { dueAt: "", claim: "" } },
      ),

    /** Makes one message due and restarts its schedule. Null when there is no such message. */
    resend: (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId, now: Date) =>
      messages.findOneAndUpdate(
        { _id: id, projectId, webhookId },
        { $set: { state: "waiting", dueAt: now, scheduleAttempts: 0 }, $unset: { claim: "" } },
        { returnDocument: "after" },
      ),

    /** Makes a page of failed messages due whose events are from `since` or later, oldest first. Resolves to how many. */
    recoverPage: (
      projectId: ProjectId,
      webhookId: WebhookId,
      { since, limit, now }: { since: Date; limit: number; now: Date },
    ): Promise<number> =>
      changePage(
        { projectId, webhookId, state: "failed", _id: { $gte: firstWebhookMessageId(since) } },
        { hint: indexName(indexes.byState), sort: { _id: 1 }, limit },
        { $set: { state: "waiting", dueAt: now, scheduleAttempts: 0 } },
      ),

    /** Removes a page of the messages of one webhook. Resolves to how many. */
    removeOfWebhook: async (projectId: ProjectId, webhookId: WebhookId): Promise<number> =>
      (await removeFirst(messages, { projectId, webhookId }, byIndex(indexes.byWebhook))).length,
  });
};

export type WebhookMessageStore = ReturnType<typeof createWebhookMessageStore>;
