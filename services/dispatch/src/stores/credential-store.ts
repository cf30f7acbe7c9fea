import { randomUUID } from "node:crypto";
import type { EventData, OutboxEvent, ProjectId, Provider, ProviderProblemReason } from "@herald/contracts";
import { type Envelope, type Logger, type MasterKeys, rewrapAll, seal, unseal } from "@herald/kit";
import {
  ensureIndexes,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexNames,
  insertBatched,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { refusalAdvice } from "../domain/refusal-advice.ts";
import { nextTrialAt } from "../domain/trials.ts";

export type CredentialDocument = {
  /** `<project>/<provider>`. */
  _id: string;
  projectId: ProjectId;
  provider: Provider;
  /** Changes with each write of the settings: pushes, pauses and cached clients belong to one version. */
  version: string;
  /** The part of the settings that may be shown. */
  view: Record<string, unknown>;
  secrets: Envelope;
  updatedAt: Date;
  /** The provider refused the credential, or the settings cannot be used: then there are no trials. */
  paused?: {
    at: Date;
    reason: string;
    providerReason: string;
    /** When a waiting push is tried. */
    nextTrialAt?: Date;
    /** Trials that have begun. */
    trials?: number;
  };
  /** When a trial last ended a pause. */
  resumedAt?: Date;
  /** When the provider first accepted the credential. If it refuses a device after that, the device's token may be at fault. */
  provenAt?: Date;
  /** The provider's servers that sent Retry-After, and when each may be sent to again. */
  throttles?: { route: string; until: Date }[];
  /** Why servers of the provider cannot be reached. `at`: when a push last failed for this reason. */
  problems?: StoredProblem[];
  outbox?: OutboxEvent[];
};

/** Why a server cannot be reached, or a credential is doubtful. */
export type RouteProblem = Pick<StoredProblem, "reason" | "detail"> & { readonly host?: string | undefined };

type StoredProblem = {
  route: string;
  reason: ProviderProblemReason;
  host?: string;
  detail: string;
  since: Date;
  at: Date;
};

/** No provider has more servers of its own than this. */
const maxProblems = 8;

/** One envelope field holds all settings: each provider decides which are secret, and all may be. */
const settingsField = "settings";

/** More throttled servers than this occur only with devices that name their own servers. */
const maxThrottles = 32;

type Throttle = NonNullable<CredentialDocument["throttles"]>[number];

const indexes = {
  paused: { fields: { "paused.at": 1 }, purpose: "status", partial: having("paused") },
  problems: { fields: { "problems.at": 1 }, purpose: "status", partial: having("problems") },
  project: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
} as const satisfies Record<string, IndexSpec>;
const hints = indexNames(indexes);

export const credentialCollection = (db: Db): Collection<CredentialDocument> => db.collection("credentials");

/** One version of a project's settings for a provider. */
type Version = Pick<CredentialDocument, "projectId" | "provider" | "version">;

/** Settings, and the part of them that may be shown. */
export type Settings = { readonly settings: Record<string, unknown>; readonly view: Record<string, unknown> };

const keyOf = (projectId: ProjectId, provider: Provider) => `${projectId}/${provider}`;

/** The provider settings of projects, encrypted. Only `open` decrypts them; `view` holds the part that may be shown. */
export const createCredentialStore = (db: Db, masterKeys: MasterKeys) => {
  const credentials = credentialCollection(db);
  const find = (projectId: ProjectId, provider: Provider) =>
    credentials.findOne({ _id: keyOf(projectId, provider), projectId });

  const insertOne = insertBatched(credentials);
  /** The fields of a new version. */
  const contentOf = (projectId: ProjectId, provider: Provider, { settings, view }: Settings, updatedAt: Date) => {
    const secrets = seal(masterKeys, [projectId, provider], { [settingsField]: JSON.stringify(settings) });
    return { version: randomUUID(), secrets, view, updatedAt };
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(credentials, [...Object.values(indexes), outboxIndex]),
    find,

    /**
     * Replaces the settings of `before` (null: none) and ends a pause. Resolves to the stored document. Undefined when the settings or the
     * pause have changed since `before` was read.
     */
    put: async (
      projectId: ProjectId,
      provider: Provider,
      given: Settings,
      now: Date,
      before: Pick<CredentialDocument, "version" | "paused"> | null,
    ): Promise<CredentialDocument | undefined> => {
      const _id = keyOf(projectId, provider);
      const changed = contentOf(projectId, provider, given, now);
      const document = { _id, projectId, provider, ...changed };
      if (!before) return (await insertOne(document)) ? document : undefined;
      const { matchedCount } = await credentials.updateOne(
        { _id, projectId, version: before.version, paused: { $exists: before.paused !== undefined } },
        {
          $set: changed,
          $unset: { paused: "", resumedAt: "", throttles: "", provenAt: "", problems: "" },
          ...(before.paused ? { $push: { outbox: resumed(document, "new-settings", now) } } : {}),
        },
      );
      return matchedCount === 1 ? document : undefined;
    },

    /** Changes only the settings: a pause continues and `provenAt` stays. False when another version is stored. */
    change: async (
      { _id, projectId, provider, version }: CredentialDocument,
      given: Settings,
      now: Date,
    ): Promise<boolean> => {
      const changed = contentOf(projectId, provider, given, now);
      return (await credentials.updateOne({ _id, projectId, version }, { $set: changed })).matchedCount === 1;
    },

    /** The decrypted settings. Throws when the master key is missing or the record was tampered with. */
    open: async ({ projectId, provider, secrets }: CredentialDocument): Promise<unknown> =>
      JSON.parse(unseal(masterKeys, [projectId, provider], secrets)[settingsField] ?? "null"),

    remove: async (projectId: ProjectId, provider: Provider): Promise<boolean> => {
      const { deletedCount } = await credentials.deleteOne({ _id: keyOf(projectId, provider), projectId });
      return deletedCount === 1;
    },

    /** The parts of a project's settings that may be shown, ordered by provider. */
    viewsOf: async (projectId: ProjectId): Promise<Pick<CredentialDocument, "provider" | "view">[]> =>
      credentials
        .find({ projectId }, { hint: hints.project, projection: { _id: 0, provider: 1, view: 1 } })
        .sort({ _id: 1 })
        .toArray(),

    /** Up to `limit` paused providers of all projects, and up to `limit` providers with a server that was not reached after `since`. */
    troubled: async (
      since: Date,
      limit: number,
    ): Promise<Pick<CredentialDocument, "projectId" | "provider" | "paused" | "problems">[]> => {
      const projection = { projectId: 1, provider: 1, paused: 1, problems: 1 } as const;
      const withProblems = { problems: { $exists: true }, "problems.at": { $gt: since } };
      const found = await Promise.all([
        findSome(credentials, { paused: { $exists: true } }, { hint: hints.paused, limit, projection }),
        findSome(credentials, withProblems, { hint: hints.problems, limit, projection }),
      ]);
      return [...new Map(found.flat().map((document) => [document._id, document])).values()];
    },

    /** Up to `limit` projects with settings, in order of their ids, after `last`. */
    projectsAfter: async (last: ProjectId | undefined, limit: number): Promise<ProjectId[]> => {
      const found = await findSome(credentials, last ? { projectId: { $gt: last } } : {}, {
        hint: hints.project,
        sort: { projectId: 1, _id: 1 },
        limit: limit * 3, // a project has three providers at most
        projection: { _id: 0, projectId: 1 },
      });
      return [...new Set(found.map(({ projectId }) => projectId))].slice(0, limit);
    },

    /**
     * Pauses a provider that refuses this version of the settings. `refusedAt`: when it first did; then pushes are tried, and a trial that
     * it accepted since is believed instead. True only for the first caller.
     */
    pause: async (
      { projectId, provider, version }: Version,
      why: PauseReason,
      now: Date,
      refusedAt?: Date,
    ): Promise<boolean> => {
      const resumedSince = refusedAt && { resumedAt: { $not: { $gt: refusedAt } } };
      const { modifiedCount } = await credentials.updateOne(
        { _id: keyOf(projectId, provider), projectId, version, paused: { $exists: false }, ...resumedSince },
        {
          $set: { paused: { at: now, ...why, ...(refusedAt && { trials: 0, nextTrialAt: nextTrialAt(0, now) }) } },
          $push: { outbox: paused({ projectId, provider, version }, why, now) },
        },
      );
      return modifiedCount === 1;
    },

    /**
     * Claims the trial that is due, for one push. Resolves to the time of the next one, which is planned now: the claiming process may die.
     * Undefined when none is due or another process was first.
     */
    claimTrial: async (
      { _id, projectId, version, paused: known }: CredentialDocument,
      now: Date,
    ): Promise<Date | undefined> => {
      const due = known?.nextTrialAt;
      if (due === undefined || due > now) return undefined;
      const trials = (known?.trials ?? 0) + 1;
      const next = nextTrialAt(trials, now);
      const { modifiedCount } = await credentials.updateOne(
        { _id, projectId, version, "paused.nextTrialAt": due },
        { $set: { "paused.nextTrialAt": next, "paused.trials": trials } },
      );
      return modifiedCount === 1 ? next : undefined;
    },

    /** Ends a pause because the provider accepted a trial. True only for the first caller. */
    resume: async ({ projectId, provider, version }: Version, now: Date): Promise<boolean> => {
      const { modifiedCount } = await credentials.updateOne(
        { _id: keyOf(projectId, provider), projectId, version, "paused.nextTrialAt": { $exists: true } },
        {
          $set: { resumedAt: now },
          $unset: { paused: "" },
          $push: { outbox: resumed({ projectId, provider, version }, "accepted-again", now) },
        },
      );
      return modifiedCount === 1;
    },

    /** Records that the provider accepted this version of the settings for a device. */
    prove: async ({ projectId, provider, version }: Version, now: Date) => {
      await credentials.updateOne(
        { _id: keyOf(projectId, provider), projectId, version, provenAt: { $exists: false } },
        { $set: { provenAt: now } },
      );
    },

    /** Stops all processes from sending to a server before `until`. Removes expired throttles. */
    block: async (
      { projectId, provider, route, until }: Throttle & Pick<CredentialDocument, "projectId" | "provider">,
      now: Date,
    ) => {
      const known = { $ifNull: ["$throttles", []] };
      const later = { $and: [{ $eq: ["$$this.route", { $literal: route }] }, { $gte: ["$$this.until", until] }] };
      const other = { $and: [{ $ne: ["$$this.route", { $literal: route }] }, { $gt: ["$$this.until", now] }] };
      const kept = { $filter: { input: known, cond: { $or: [later, other] } } };
      // A stored throttle that lasts longer makes this one needless, but an extra entry does no harm: the longest counts.
      const all = { $concatArrays: [kept, [{ route: { $literal: route }, until }]] };
      await credentials.updateOne({ _id: keyOf(projectId, provider), projectId }, [
        { $set: { throttles: { $slice: [all, -maxThrottles] } } },
      ]);
    },

    /** Records why a server cannot be reached; undefined: it can. The problems of other servers stay. */
    report: async (
      { projectId, provider, version }: Version,
      route: string,
      problem: RouteProblem | undefined,
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
      // If two replicas write at the same time, one report may be lost: that replica reports again within a minute.
      await credentials.updateOne(key, { $set: { problems: [...others, stored].slice(-maxProblems) } });
    },

    removeProject: async (projectId: ProjectId) => {
      await credentials.deleteMany({ projectId }, { hint: hints.project });
    },

    /** Wraps every data key with the first master key. */
    rotate: (log: Logger): Promise<void> => {
      const others = credentials.find({ "secrets.keyId": { $ne: masterKeys[0].id } });
      const secrets = others.map(({ _id, projectId, provider, version, secrets: envelope }) => ({
        owner: [projectId, provider] as const,
        envelope,
        store: (rewrapped: Envelope) =>
          credentials.updateOne({ _id, projectId, version }, { $set: { secrets: rewrapped } }),
      }));
      return rewrapAll(masterKeys, secrets, { kind: "credentials", log });
    },
  });
};

type PauseReason = { readonly reason: string; readonly providerReason: string };

export type CredentialStore = ReturnType<typeof createCredentialStore>;

const paused = (
  { projectId, provider, version }: Version,
  { reason, providerReason }: PauseReason,
  at: Date,
): OutboxEvent => ({
  // A version may be paused and resumed several times.
  id: `${projectId}/${provider}/${version}/paused/${at.getTime()}`,
  event: "ProviderPausedV1",
  subject: provider,
  at,
  data: {
    project_id: projectId,
    provider,
    reason,
    provider_reason: providerReason,
    detail: refusalAdvice(providerReason || reason),
    at: at.toISOString(),
  },
});

const resumed = (
  { projectId, provider, version }: Version,
  reason: EventData<"ProviderResumedV1">["reason"],
  at: Date,
): OutboxEvent => ({
  id: `${projectId}/${provider}/${version}/resumed/${at.getTime()}`,
  event: "ProviderResumedV1",
  subject: provider,
  at,
  data: { project_id: projectId, provider, reason, at: at.toISOString() },
});
