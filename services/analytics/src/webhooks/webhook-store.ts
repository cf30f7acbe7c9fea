import {
  type DisabledReason,
  firstWebhookId,
  type ListRequest,
  type OutboxEvent,
  type ProjectId,
  type WebhookId,
} from "@herald/contracts";
import { type Envelope, type Logger, type MasterKeys, rewrapAll, seal, unseal } from "@herald/kit";
import {
  createCounts,
  findByProjects,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  outboxIndex,
  projectRows,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";

export type WebhookDocument = {
  readonly _id: WebhookId;
  readonly projectId: ProjectId;
  readonly url: string;
  /** Null: all types. */
  readonly events: readonly string[] | null;
  readonly description?: string;
  /** Absent: enabled. */
  readonly disabled?: { readonly reason: DisabledReason; readonly at: Date };
  /** Time of the first failed attempt since the last success. */
  readonly failingSince?: Date;
  readonly secrets: Envelope;
  /** Until this time the previous secret signs too. */
  readonly previousUntil?: Date;
  /** Id of the rotation that made the current secret. */
  readonly rotationId?: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly outbox?: OutboxEvent[];
};

export type WebhookSettings = Pick<WebhookDocument, "url" | "events" | "description">;

const indexes = {
  byProject: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

export const webhookCollection = (db: Db): Collection<WebhookDocument> => db.collection("webhooks");

/** Every function throws `database-unavailable` while the database is unavailable. */
export const createWebhookStore = (db: Db, masterKeys: MasterKeys) => {
  const webhooks = webhookCollection(db);
  const counts = createCounts();
  const ownerOf = ({ projectId, _id }: Pick<WebhookDocument, "projectId" | "_id">) => [projectId, _id] as const;
  const find = (projectId: ProjectId, id: WebhookId) => webhooks.findOne({ _id: id, projectId });

  return guardStore({
    ...projectRows(webhooks, indexes, indexes.byProject),
    find,

    list: (projectId: ProjectId, request: ListRequest) =>
      findPage(webhooks, {
        filter: { projectId },
        hint: indexName(indexes.byProject),
        firstId: firstWebhookId,
        request,
        counts,
      }),

    count: (projectId: ProjectId): Promise<number> =>
      webhooks.countDocuments({ projectId }, { hint: indexName(indexes.byProject) }),

    ofProjects: findByProjects(webhooks, indexes.byProject),

    /** Stores a new webhook. A repeat replaces the secret, which no client has received yet. */
    create: async (projectId: ProjectId, id: WebhookId, settings: WebhookSettings, secret: string, now: Date) => {
      const secrets = seal(masterKeys, [projectId, id], { current: secret });
      const webhook = { _id: id, projectId, ...settings, secrets, createdAt: now, updatedAt: now };
      if (!(await insertMissing(webhooks, [webhook])))
        await webhooks.updateOne({ _id: id, projectId }, { $set: { secrets } });
      return find(projectId, id);
    },

    change: async (
      projectId: ProjectId,
      id: WebhookId,
      { settings, enabled }: { settings: Partial<WebhookSettings>; enabled?: boolean | undefined },
      now: Date,
    ): Promise<WebhookDocument | null> => {
      const filter = { _id: id, projectId };
      await webhooks.updateOne(filter, { $set: { ...settings, updatedAt: now } });
      if (enabled !== undefined)
        await webhooks.updateOne(
          { ...filter, disabled: { $exists: enabled } },
          enabled
            ? { $unset: { disabled: "", failingSince: "" } }
            : { $set: { disabled: { reason: "requested", at: now } } },
        );
      return find(projectId, id);
    },

    /** Replaces the secret; the replaced one signs until `previousUntil`. Null: no such webhook. Repeatable by `rotationId`. */
    rotate: async (
      projectId: ProjectId,
      id: WebhookId,
      { secret, previousUntil, rotationId }: { secret: string; previousUntil: Date; rotationId: string },
      now: Date,
    ): Promise<WebhookDocument | null> => {
      for (;;) {
        const before = await find(projectId, id);
        if (before === null) return null;
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

    /** The secrets that sign at a time, the newest first. Throws when the master key is missing. */
    secretsAt: async (webhook: WebhookDocument, at: Date): Promise<string[]> => {
      const { current = "", previous } = unseal(masterKeys, ownerOf(webhook), webhook.secrets);
      const both = webhook.previousUntil !== undefined && at < webhook.previousUntil;
      return previous !== undefined && both ? [current, previous] : [current];
    },

    remove: async (projectId: ProjectId, id: WebhookId): Promise<boolean> =>
      (await webhooks.deleteOne({ _id: id, projectId })).deletedCount === 1,

    /** Stores the time of the first failure since a success. */
    recordFailure: async (projectId: ProjectId, id: WebhookId, at: Date): Promise<void> => {
      const filter = { _id: id, projectId, failingSince: { $exists: false } };
      await webhooks.updateOne(filter, { $set: { failingSince: at } });
    },

    recordSuccess: async (projectId: ProjectId, id: WebhookId): Promise<void> => {
      await webhooks.updateOne({ _id: id, projectId }, { $unset: { failingSince: "" } });
    },

    /** Disables a webhook unless its URL, or the time of its first failure, has changed. True when this call disabled it. */
    disable: async (
      { projectId, _id }: Pick<WebhookDocument, "projectId" | "_id">,
      why: { reason: "gone"; url: string } | { reason: "failing"; since: Date },
      now: Date,
    ): Promise<boolean> => {
      const at = now.toISOString();
      const event: OutboxEvent<"WebhookDisabledV1"> = {
        id: `${_id}/disabled/${now.getTime()}`,
        event: "WebhookDisabledV1",
        subject: _id,
        at: now,
        data: {
          project_id: projectId,
          webhook_id: _id,
          reason: why.reason,
          at,
          ...(why.reason === "failing" && { failing_since: why.since.toISOString() }),
        },
      };
      const condition = why.reason === "gone" ? { url: why.url } : { failingSince: why.since };
      const { modifiedCount } = await webhooks.updateOne(
        { _id, projectId, disabled: { $exists: false }, ...condition },
        { $set: { disabled: { reason: why.reason, at: now } }, $push: { outbox: event } },
      );
      return modifiedCount === 1;
    },

    /** Encrypts every data key with the first master key. */
    rewrap: (log: Logger): Promise<void> => {
      const others = async function* () {
        for await (const webhook of webhooks.find({ "secrets.keyId": { $ne: masterKeys[0].id } })) {
          const { _id, projectId, secrets } = webhook;
          const filter = { _id, projectId, "secrets.dataKey": secrets.dataKey };
          const store = (rewrapped: Envelope) => webhooks.updateOne(filter, { $set: { secrets: rewrapped } });
          yield { owner: ownerOf(webhook), envelope: secrets, store };
        }
      };
      return rewrapAll(masterKeys, others(), { kind: "webhooks", log });
    },
  });
};

export type WebhookStore = ReturnType<typeof createWebhookStore>;
