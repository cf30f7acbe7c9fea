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
  createCounts,
  ensureIndexes,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  retryConflicts,
} from "@herald/mongo";
import type { Collection, Db, UpdateFilter } from "mongodb";
import type { AttemptDocument, NewMessage, WebhookMessageDocument } from "./webhook-message-document.ts";

const byWebhook = { fields: { projectId: 1, webhookId: 1, _id: 1 }, purpose: "list" } as const satisfies IndexSpec;
const byState = {
  fields: { projectId: 1, webhookId: 1, state: 1, _id: 1 },
  purpose: "list",
} as const satisfies IndexSpec;
/** What waits, by webhook: finding the next webhook that has something to send looks at one row of it. */
const waiting = {
  fields: { webhookId: 1, dueAt: 1 },
  purpose: "send",
  partial: { state: "waiting" },
} as const satisfies IndexSpec;
const ending = { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 0 } as const satisfies IndexSpec;

/** As long as the events themselves are kept. */
const keepMs = 30 * 86_400_000;
/** More than a schedule has, so that those of a message sent again by hand are seen beside them. */
const keptAttempts = 20;
const deletionPage = 2_000;

/** A claim on one message: it counts only until somebody else has taken the message. */
type Claimed = Pick<WebhookMessageDocument, "_id" | "projectId" | "claim">;

/** Messages to webhooks, each once. Every function throws `database-unavailable` when the database is. */
export const createWebhookMessageStore = (db: Db) => {
  const messages: Collection<WebhookMessageDocument> = db.collection("webhookMessages");
  const counts = createCounts();
  const ofWebhook = (projectId: ProjectId, webhookId: WebhookId) => ({ projectId, webhookId });

  /** Notes an attempt, and what follows from it unless somebody else has the message by now. */
  const noteAttempt = async (
    { _id, projectId, claim }: Claimed,
    attempt: AttemptDocument,
    { $set, $unset }: UpdateFilter<WebhookMessageDocument>,
  ): Promise<void> => {
    const attempts = { $each: [attempt], $slice: -keptAttempts };
    const { matchedCount } = await messages.updateOne(
      { _id, projectId, ...(claim === undefined ? {} : { claim }) },
      { $push: { attempts }, $inc: { attemptCount: 1, round: 1 }, $set: { ...$set }, $unset: { ...$unset, claim: "" } },
    );
    if (matchedCount === 0)
      await messages.updateOne({ _id, projectId }, { $push: { attempts }, $inc: { attemptCount: 1 } });
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(messages, [byWebhook, byState, waiting, ending]),

    /** Stores messages; one that is there already stays as it is. Those with a `failure` are not to be sent. */
    put: async (batch: readonly (NewMessage & { readonly failure?: string })[], now: Date): Promise<void> => {
      const documents = batch.map(
        ({ failure, ...message }): WebhookMessageDocument => ({
          ...message,
          ...(failure === undefined ? { state: "waiting", dueAt: now } : { state: "failed", error: failure }),
          round: 0,
          attemptCount: 0,
          attempts: [],
          expiresAt: new Date(now.getTime() + keepMs),
        }),
      );
      await insertMissing(messages, documents);
    },

    /**
     * Changes what messages about events from before `at` say, where `change` gives another payload. One that tells of the erasure
     * itself changes once it has been sent.
     */
    rewrite: async (projectId: ProjectId, at: Date, change: (payload: string) => string): Promise<void> => {
      const all = messages.find(
        { projectId, at: { $lte: at } },
        { hint: indexName(byWebhook), projection: { projectId: 1, payload: 1, type: 1, state: 1 } },
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
        filter: { ...ofWebhook(projectId, webhookId), ...(state === undefined ? {} : { state }) },
        request,
        hint: indexName(state === undefined ? byWebhook : byState),
        projection: { payload: 0, attempts: 0 },
        counts,
      }),

    /** The first webhook behind `after` that has messages waiting, and when the first of them is due. */
    nextWaiting: async (after: string) => {
      const [found] = await messages
        .find(
          { state: "waiting", webhookId: { $gt: after as WebhookId } },
          { hint: indexName(waiting), projection: { projectId: 1, webhookId: 1, dueAt: 1 } },
        )
        .sort({ webhookId: 1, dueAt: 1 })
        .limit(1)
        .toArray();
      return found as Pick<WebhookMessageDocument, "projectId" | "webhookId" | "dueAt"> | undefined;
    },

    /** Takes messages that are due, the longest first: nobody else gets them before `until`. */
    claim: async (
      { projectId, webhookId }: Pick<WebhookMessageDocument, "projectId" | "webhookId">,
      { claim, limit, now, until }: { claim: string; limit: number; now: Date; until: Date },
    ): Promise<WebhookMessageDocument[]> => {
      const due = await messages
        .find(
          { state: "waiting", webhookId, dueAt: { $lte: now } },
          { hint: indexName(waiting), projection: { dueAt: 1 } },
        )
        .sort({ webhookId: 1, dueAt: 1 })
        .limit(limit)
        .toArray();
      if (due.length === 0) return [];
      const writes = due
        .sort((one, other) => (one._id < other._id ? -1 : 1))
        .map(({ _id, dueAt }) => ({
          updateOne: {
            filter: { _id, projectId, state: "waiting" as const, ...(dueAt === undefined ? {} : { dueAt }) },
            update: { $set: { claim, dueAt: until } },
          },
        }));
      await retryConflicts(() => messages.bulkWrite(writes, { ordered: false }));
      return messages.find({ _id: { $in: due.map(({ _id }) => _id) }, projectId, claim }, { hint: "_id_" }).toArray();
    },

    /** Gives back what was claimed and not tried. */
    release: async ({ _id, projectId, claim }: Claimed, now: Date): Promise<void> => {
      if (claim === undefined) return;
      await messages.updateOne({ _id, projectId, claim }, { $set: { dueAt: now }, $unset: { claim: "" } });
    },

    delivered: (claimed: Claimed, attempt: AttemptDocument) =>
      noteAttempt(claimed, attempt, { $set: { state: "delivered" }, $unset: { dueAt: "", error: "" } }),

    /** With `next`, when it is tried again; without, it has failed. */
    notDelivered: (claimed: Claimed, attempt: AttemptDocument, error: string, next: Date | undefined) =>
      noteAttempt(
        claimed,
        attempt,
        next === undefined
          ? { $set: { state: "failed", error }, $unset: { dueAt: "" } }
          : { $set: { dueAt: next, error } },
      ),

    /** Gives up a page of what waits. False when nothing is left. */
    giveUpPage: async (projectId: ProjectId, webhookId: WebhookId, error: string): Promise<boolean> => {
      const page = await messages
        .find({ state: "waiting", webhookId }, { hint: indexName(waiting), projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await messages.updateMany(
        { projectId, _id: { $in: page.map(({ _id }) => _id) }, state: "waiting" },
        { $set: { state: "failed", error }, $unset: { dueAt: "", claim: "" } },
      );
      return true;
    },

    /** Makes one message due, on a schedule of its own. Null when there is none. */
    again: (projectId: ProjectId, webhookId: WebhookId, id: WebhookMessageId, now: Date) =>
      messages.findOneAndUpdate(
        { _id: id, projectId, webhookId },
        { $set: { state: "waiting", dueAt: now, round: 0 }, $unset: { claim: "" } },
        { returnDocument: "after" },
      ),

    /** Makes a page of what failed since a time due, oldest first. Resolves to how many. */
    recoverPage: async (
      projectId: ProjectId,
      webhookId: WebhookId,
      { since, limit, now }: { since: Date; limit: number; now: Date },
    ): Promise<number> => {
      const page = await messages
        .find(
          { ...ofWebhook(projectId, webhookId), state: "failed", _id: { $gte: firstWebhookMessageId(since) } },
          { hint: indexName(byState), projection: { _id: 1 } },
        )
        .sort({ _id: 1 })
        .limit(limit)
        .toArray();
      if (page.length === 0) return 0;
      await messages.updateMany(
        { projectId, _id: { $in: page.map(({ _id }) => _id) }, state: "failed" },
        { $set: { state: "waiting", dueAt: now, round: 0 } },
      );
      return page.length;
    },

    /** Removes messages of a project, or of one webhook, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId, webhookId?: WebhookId): Promise<boolean> => {
      const page = await messages
        .find(webhookId === undefined ? { projectId } : ofWebhook(projectId, webhookId), {
          hint: indexName(byWebhook),
          projection: { _id: 1 },
        })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await messages.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },
  });
};

export type WebhookMessageStore = ReturnType<typeof createWebhookMessageStore>;
