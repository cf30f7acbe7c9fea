import { randomUUID } from "node:crypto";
import type { OutboxEvent, ProjectId, Provider, ProviderProblemReason } from "@herald/contracts";
import { type Envelope, type MasterKeys, rewrap, seal, unseal } from "@herald/kit";
import { ensureIndexes, guardStore, type IndexSpec, indexName, isDuplicateKey, outboxIndex } from "@herald/mongo";
import type { Collection, Db } from "mongodb";

export type CredentialDocument = {
  /** `<project>/<provider>`. */
  _id: string;
  projectId: ProjectId;
  provider: Provider;
  /** A new one with each put: what is sent, paused or cached belongs to one version. */
  version: string;
  /** What may be shown of the settings. */
  view: Record<string, unknown>;
  secrets: Envelope;
  updatedAt: Date;
  /** The provider refused the credential. */
  paused?: { at: Date; reason: string; providerReason: string };
  /** The provider took it for a device: what it refuses since then may be a stranger's token. */
  provenAt?: Date;
  /** Which of its servers sent Retry-After, and until when it holds. */
  throttles?: { route: string; until: Date }[];
  /** Why its servers are not reached; `at`: when somebody last found it so. */
  problems?: StoredProblem[];
  outbox?: OutboxEvent[];
};

export type StoredProblem = {
  route: string;
  reason: ProviderProblemReason;
  host?: string;
  detail: string;
  since: Date;
  at: Date;
};

/** More servers than these are never a provider's own. */
const maxProblems = 8;

/** One envelope field holds all settings: which of them are secret is each provider's affair, and all may be. */
const settingsField = "settings";

/** Only devices that name their own servers bring more throttled servers than these. */
const maxThrottles = 32;

type Throttle = NonNullable<CredentialDocument["throttles"]>[number];

const pausedIndex: IndexSpec = {
  fields: { "paused.at": 1 },
  purpose: "status",
  partial: { paused: { $exists: true } },
};
const problemsIndex: IndexSpec = {
  fields: { "problems.at": 1 },
  purpose: "status",
  partial: { problems: { $exists: true } },
};
const projectIndex: IndexSpec = { fields: { projectId: 1, _id: 1 }, purpose: "list" };

export const credentialCollection = (db: Db): Collection<CredentialDocument> => db.collection("credentials");

const keyOf = (projectId: ProjectId, provider: Provider) => `${projectId}/${provider}`;

/** What projects send with. Settings leave it only to be used; what is shown is its own field. */
export const createCredentialStore = (db: Db, masterKeys: MasterKeys) => {
  const credentials = credentialCollection(db);
  const find = (projectId: ProjectId, provider: Provider) =>
    credentials.findOne({ _id: keyOf(projectId, provider), projectId });

  return guardStore({
    ensureIndexes: () => ensureIndexes(credentials, [projectIndex, outboxIndex, pausedIndex, problemsIndex]),
    find,

    /**
     * Replaces the settings and ends a pause. Resolves to what is stored now; to undefined when they are not the ones of `onto`
     * any more (null: none were there).
     */
    put: async (
      projectId: ProjectId,
      provider: Provider,
      { settings, view }: { settings: Record<string, unknown>; view: Record<string, unknown> },
      now: Date,
      onto?: Pick<CredentialDocument, "version"> | null,
    ): Promise<CredentialDocument | undefined> => {
      const _id = keyOf(projectId, provider);
      const secrets = seal(masterKeys, [projectId, provider], { [settingsField]: JSON.stringify(settings) });
      const document = { _id, projectId, provider, version: randomUUID(), view, secrets, updatedAt: now };
      for (;;) {
        const before = await find(projectId, provider);
        if (onto !== undefined && before?.version !== onto?.version) return undefined;
        if (before) {
          const { version, secrets, view, updatedAt } = document;
          const { matchedCount } = await credentials.updateOne(
            { _id, projectId, version: before.version, paused: { $exists: before.paused !== undefined } },
            {
              $set: { version, secrets, view, updatedAt },
              $unset: { paused: "", throttles: "", provenAt: "", problems: "" },
              ...(before.paused ? { $push: { outbox: resumed(document, now) } } : {}),
            },
          );
          if (matchedCount === 1) return document;
          continue;
        }
        try {
          await credentials.insertOne({ ...document });
          return document;
        } catch (error) {
          // Two first puts at once: the later one replaces the earlier.
          if (!isDuplicateKey(error)) throw error;
        }
      }
    },

    /** Changes the settings and nothing else: a pause goes on, and what is proven stays so. False when they are others by now. */
    change: async (
      { _id, projectId, provider, version }: CredentialDocument,
      { settings, view }: { settings: Record<string, unknown>; view: Record<string, unknown> },
      now: Date,
    ): Promise<boolean> => {
      const secrets = seal(masterKeys, [projectId, provider], { [settingsField]: JSON.stringify(settings) });
      const { matchedCount } = await credentials.updateOne(
        { _id, projectId, version },
        { $set: { version: randomUUID(), secrets, view, updatedAt: now } },
      );
      return matchedCount === 1;
    },

    /** The settings as they were put. Throws where the master key is missing or the record was tampered with. */
    open: async ({ projectId, provider, secrets }: CredentialDocument): Promise<unknown> =>
      JSON.parse(unseal(masterKeys, [projectId, provider], secrets)[settingsField] ?? "null"),

    remove: async (projectId: ProjectId, provider: Provider): Promise<boolean> => {
      const { deletedCount } = await credentials.deleteOne({ _id: keyOf(projectId, provider), projectId });
      return deletedCount === 1;
    },

    /** What may be shown of a project's settings, by provider. */
    viewsOf: async (projectId: ProjectId): Promise<Pick<CredentialDocument, "provider" | "view">[]> =>
      credentials
        .find({ projectId }, { hint: indexName(projectIndex), projection: { _id: 0, provider: 1, view: 1 } })
        .sort({ _id: 1 })
        .toArray(),

    /** Some of all projects that are paused, and some whose servers were not reached after `since`. */
    troubled: async (
      since: Date,
      limit: number,
    ): Promise<Pick<CredentialDocument, "projectId" | "provider" | "paused" | "problems">[]> => {
      const projection = { projectId: 1, provider: 1, paused: 1, problems: 1 } as const;
      const some = { limit, batchSize: limit + 1, projection };
      const found = await Promise.all([
        credentials.find({ paused: { $exists: true } }, { hint: indexName(pausedIndex), ...some }).toArray(),
        credentials
          .find(
            { problems: { $exists: true }, "problems.at": { $gt: since } },
            { hint: indexName(problemsIndex), ...some },
          )
          .toArray(),
      ]);
      return [...new Map(found.flat().map((document) => [document._id, document])).values()];
    },

    /** Every project that has settings, a few at a time. */
    projectsAfter: async (last: ProjectId | undefined, limit: number): Promise<ProjectId[]> => {
      const found = await credentials
        .find(last ? { projectId: { $gt: last } } : {}, {
          hint: indexName(projectIndex),
          projection: { _id: 0, projectId: 1 },
        })
        .sort({ projectId: 1, _id: 1 })
        // A project has three providers at most.
        .limit(limit * 3)
        .toArray();
      return [...new Set(found.map(({ projectId }) => projectId))].slice(0, limit);
    },

    /** The provider refuses this version. True for the one who notices first. */
    pause: async (
      { projectId, provider, version }: Pick<CredentialDocument, "projectId" | "provider" | "version">,
      why: { reason: string; providerReason: string },
      now: Date,
    ): Promise<boolean> => {
      const { modifiedCount } = await credentials.updateOne(
        { _id: keyOf(projectId, provider), projectId, version, paused: { $exists: false } },
        {
          $set: { paused: { at: now, ...why } },
          $push: { outbox: paused({ projectId, provider, version }, why, now) },
        },
      );
      return modifiedCount === 1;
    },

    /** The provider took this version of the settings for a device. */
    prove: async (
      { projectId, provider, version }: Pick<CredentialDocument, "projectId" | "provider" | "version">,
      now: Date,
    ) => {
      await credentials.updateOne(
        { _id: keyOf(projectId, provider), projectId, version, provenAt: { $exists: false } },
        { $set: { provenAt: now } },
      );
    },

    /** Nothing is sent to that server before `until`, by any process. What is over is forgotten. */
    block: async (
      { projectId, provider, route, until }: Throttle & Pick<CredentialDocument, "projectId" | "provider">,
      now: Date,
    ) => {
      const known = { $ifNull: ["$throttles", []] };
      const later = { $and: [{ $eq: ["$$this.route", { $literal: route }] }, { $gte: ["$$this.until", until] }] };
      const other = { $and: [{ $ne: ["$$this.route", { $literal: route }] }, { $gt: ["$$this.until", now] }] };
      const kept = { $filter: { input: known, cond: { $or: [later, other] } } };
      // One that lasts longer makes this one needless, but one too many does no harm: the longest counts.
      const all = { $concatArrays: [kept, [{ route: { $literal: route }, until }]] };
      await credentials.updateOne({ _id: keyOf(projectId, provider), projectId }, [
        { $set: { throttles: { $slice: [all, -maxThrottles] } } },
      ]);
    },

    /** Says why a server is not reached, or that it is (undefined). What other servers have is kept. */
    report: async (
      { projectId, provider, version }: Pick<CredentialDocument, "projectId" | "provider" | "version">,
      route: string,
      problem: (Pick<StoredProblem, "reason" | "detail"> & { host?: string | undefined }) | undefined,
      now: Date,
    ) => {
      const key = { _id: keyOf(projectId, provider), projectId, version };
      const known = (await credentials.findOne(key, { projection: { problems: 1 } }))?.problems ?? [];
      const others = known.filter((one) => one.route !== route);
      const before = known.find((one) => one.route === route);
      if (!problem) {
        if (before) await credentials.updateOne(key, { $set: { problems: others } });
        return;
      }
      const { reason, host, detail } = problem;
      const since = before?.reason === reason ? before.since : now;
      const stored: StoredProblem = { route, reason, ...(host === undefined ? {} : { host }), detail, since, at: now };
      // Two replicas at once may lose one's word: it says it again within a minute.
      await credentials.updateOne(key, { $set: { problems: [...others, stored].slice(-maxProblems) } });
    },

    removeProject: async (projectId: ProjectId) => {
      await credentials.deleteMany({ projectId }, { hint: indexName(projectIndex) });
    },

    /** Puts every data key under the first master key. Resolves to how many were moved and which keys are missing. */
    rotate: async (): Promise<{ moved: number; missing: string[] }> => {
      const known = new Set(masterKeys.map(({ id }) => id));
      const missing = new Set<string>();
      let moved = 0;
      const others = credentials.find({ "secrets.keyId": { $ne: masterKeys[0].id } });
      for await (const { _id, projectId, provider, version, secrets } of others) {
        if (!known.has(secrets.keyId)) {
          missing.add(secrets.keyId);
          continue;
        }
        const wrapped = rewrap(masterKeys, [projectId, provider], secrets);
        if (!wrapped) continue;
        await credentials.updateOne({ _id, projectId, version }, { $set: { secrets: wrapped } });
        moved++;
      }
      return { moved, missing: [...missing].sort() };
    },
  });
};

export type CredentialStore = ReturnType<typeof createCredentialStore>;

type Facts = Pick<CredentialDocument, "projectId" | "provider" | "version">;

const paused = (
  { projectId, provider, version }: Facts,
  { reason, providerReason }: { reason: string; providerReason: string },
  at: Date,
): OutboxEvent => ({
  id: `${projectId}/${provider}/${version}/paused`,
  event: "ProviderPausedV1",
  subject: provider,
  at,
  data: { project_id: projectId, provider, reason, provider_reason: providerReason, at: at.toISOString() },
});

const resumed = ({ projectId, provider, version }: Facts, at: Date): OutboxEvent => ({
  id: `${projectId}/${provider}/${version}/resumed`,
  event: "ProviderResumedV1",
  subject: provider,
  at,
  data: { project_id: projectId, provider, at: at.toISOString() },
});
