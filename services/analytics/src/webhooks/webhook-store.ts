import type { DisabledReason, OutboxEvent, PageRequest, ProjectId, WebhookId } from "@herald/contracts";
import { type Envelope, type MasterKeys, rewrap, seal, unseal } from "@herald/kit";
import {
  createCounts,
  ensureIndexes,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  isDuplicateKey,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";

export type WebhookDocument = {
  readonly _id: WebhookId;
  readonly projectId: ProjectId;
  readonly url: string;
  /** Null: all. */
  readonly events: readonly string[] | null;
  readonly description?: string;
  /** Absent: it gets messages. */
  readonly disabled?: { readonly reason: DisabledReason; readonly at: Date };
  /** No attempt has succeeded since. */
  readonly failingSince?: Date;
  readonly secrets: Envelope;
  /** Until then the secret before the last signs too. */
  readonly previousUntil?: Date;
  /** Which rotation made the present secret. */
  readonly rotationId?: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly outbox?: OutboxEvent[];
};

/** What its owner may change. */
export type WebhookSettings = Pick<WebhookDocument, "url" | "events" | "description">;

const byProject = { fields: { projectId: 1, _id: 1 }, purpose: "list" } as const satisfies IndexSpec;

const deletionPage = 2_000;

export const webhookCollection = (db: Db): Collection<WebhookDocument> => db.collection("webhooks");

/** The URLs that projects want to be told at. Every function throws `database-unavailable` when the database is. */
export const createWebhookStore = (db: Db, masterKeys: MasterKeys) => {
  const webhooks = webhookCollection(db);
  const counts = createCounts();
  const ownerOf = ({ projectId, _id }: Pick<WebhookDocument, "projectId" | "_id">) => [projectId, _id] as const;
  const find = (projectId: ProjectId, id: WebhookId) => webhooks.findOne({ _id: id, projectId });

  return guardStore({
    ensureIndexes: () => ensureIndexes(webhooks, [byProject, outboxIndex]),
    find,

    list: (projectId: ProjectId, request: PageRequest) =>
      findPage(webhooks, { filter: { projectId }, request, hint: indexName(byProject), counts }),

    count: (projectId: ProjectId): Promise<number> =>
      webhooks.countDocuments({ projectId }, { hint: indexName(byProject) }),

    /** All of some projects: what an event of theirs may have to go to. */
    ofProjects: (projectIds: readonly ProjectId[]): Promise<WebhookDocument[]> =>
      webhooks.find({ projectId: { $in: [...projectIds] } }, { hint: indexName(byProject) }).toArray(),

    /** Stores a new one. One that has the id already gets this secret: nobody has seen its own. */
    create: async (
      projectId: ProjectId,
      id: WebhookId,
      settings: WebhookSettings,
      secret: string,
      now: Date,
    ): Promise<WebhookDocument | undefined> => {
      const secrets = seal(masterKeys, [projectId, id], { current: secret });
      try {
        await webhooks.insertOne({ _id: id, projectId, ...settings, secrets, createdAt: now, updatedAt: now });
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
        await webhooks.updateOne({ _id: id, projectId }, { $set: { secrets } });
      }
      return (await find(projectId, id)) ?? undefined;
    },

    /** Undefined when there is none. */
    change: async (
      projectId: ProjectId,
      id: WebhookId,
      { settings, enabled }: { settings: Partial<WebhookSettings>; enabled?: boolean | undefined },
      now: Date,
    ): Promise<WebhookDocument | undefined> => {
      const filter = { _id: id, projectId };
      await webhooks.updateOne(filter, { $set: { ...settings, updatedAt: now } });
      if (enabled === true)
        await webhooks.updateOne(
          { ...filter, disabled: { $exists: true } },
          { $unset: { disabled: "", failingSince: "" } },
        );
      if (enabled === false)
        await webhooks.updateOne(
          { ...filter, disabled: { $exists: false } },
          { $set: { disabled: { reason: "requested", at: now } } },
        );
      return (await find(projectId, id)) ?? undefined;
    },

    /** The last secret but one ends; the last goes on until `previousUntil`. Undefined when there is no such webhook. Repeatable by `rotationId`. */
    rotate: async (
      projectId: ProjectId,
      id: WebhookId,
      { secret, previousUntil, rotationId }: { secret: string; previousUntil: Date; rotationId: string },
      now: Date,
    ): Promise<WebhookDocument | undefined> => {
      for (;;) {
        const before = await find(projectId, id);
        if (before === null) return undefined;
        const { current = "", previous: last } = unseal(masterKeys, ownerOf(before), before.secrets);
        const previous = last !== undefined && before.rotationId === rotationId ? last : current;
        const secrets = seal(masterKeys, ownerOf(before), { current: secret, previous });
        const { matchedCount } = await webhooks.updateOne(
          { _id: id, projectId, "secrets.dataKey": before.secrets.dataKey },
          { $set: { secrets, previousUntil, rotationId, updatedAt: now } },
        );
        if (matchedCount === 1) return { ...before, secrets, previousUntil, updatedAt: now };
      }
    },

    /** The secrets that sign at a time, the newest first. Throws where the master key is missing. */
    secretsAt: async (webhook: WebhookDocument, at: Date): Promise<string[]> => {
      const { current = "", previous } = unseal(masterKeys, ownerOf(webhook), webhook.secrets);
      const both = webhook.previousUntil !== undefined && at < webhook.previousUntil;
      return previous !== undefined && both ? [current, previous] : [current];
    },

    remove: async (projectId: ProjectId, id: WebhookId): Promise<boolean> =>
      (await webhooks.deleteOne({ _id: id, projectId })).deletedCount === 1,

    /** An attempt failed. Only the first since a success is of interest. */
    failing: async (projectId: ProjectId, id: WebhookId, at: Date): Promise<void> => {
      await webhooks.updateOne(
        { _id: id, projectId, failingSince: { $exists: false } },
        { $set: { failingSince: at } },
      );
    },

    /** An attempt succeeded. */
    succeeded: async (projectId: ProjectId, id: WebhookId): Promise<void> => {
      await webhooks.updateOne(
        { _id: id, projectId, failingSince: { $exists: true } },
        { $unset: { failingSince: "" } },
      );
    },

    /** It said at this URL that it is gone, or has failed since before a time. True for who disabled it. */
    disable: async (
      { projectId, _id }: Pick<WebhookDocument, "projectId" | "_id">,
      why: { reason: "gone"; url: string } | { reason: "failing"; since: Date },
      now: Date,
    ): Promise<boolean> => {
      const condition = why.reason === "gone" ? { url: why.url } : { failingSince: why.since };
      const { modifiedCount } = await webhooks.updateOne(
        { _id, projectId, disabled: { $exists: false }, ...condition },
        {
          $set: { disabled: { reason: why.reason, at: now } },
          $push: { outbox: disabledEvent({ projectId, _id }, why, now) },
        },
      );
      return modifiedCount === 1;
    },

    /** Removes webhooks of a project, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> => {
      const page = await webhooks
        .find({ projectId }, { hint: indexName(byProject), projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await webhooks.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },

    /** Puts every data key under the first master key. Resolves to how many were moved and which keys are missing. */
    rewrap: async (): Promise<{ moved: number; missing: string[] }> => {
      const known = new Set(masterKeys.map(({ id }) => id));
      const missing = new Set<string>();
      let moved = 0;
      for await (const webhook of webhooks.find({ "secrets.keyId": { $ne: masterKeys[0].id } })) {
        const { _id, projectId, secrets } = webhook;
        if (!known.has(secrets.keyId)) {
          missing.add(secrets.keyId);
          continue;
        }
        const wrapped = rewrap(masterKeys, ownerOf(webhook), secrets);
        if (wrapped === undefined) continue;
        await webhooks.updateOne(
          { _id, projectId, "secrets.dataKey": secrets.dataKey },
          { $set: { secrets: wrapped } },
        );
        moved++;
      }
      return { moved, missing: [...missing].sort() };
    },
  });
};

export type WebhookStore = ReturnType<typeof createWebhookStore>;

const disabledEvent = (
  { projectId, _id }: Pick<WebhookDocument, "projectId" | "_id">,
  why: { reason: "gone" } | { reason: "failing"; since: Date },
  at: Date,
): OutboxEvent => ({
  id: `${_id}/disabled/${at.getTime()}`,
  event: "WebhookDisabledV1",
  subject: _id,
  at,
  data: {
    project_id: projectId,
    webhook_id: _id,
    reason: why.reason,
    ...(why.reason === "failing" ? { failing_since: why.since.toISOString() } : {}),
    at: at.toISOString(),
  },
});
