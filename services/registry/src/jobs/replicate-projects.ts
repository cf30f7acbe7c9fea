import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";
import {
  type ProjectId,
  type ProjectRecord,
  projectSettingsKey,
  type TokenId,
  type TokenRecord,
  tokenKey,
} from "@herald/contracts";
import type { ProjectDocument, ProjectStore, TokenEntry } from "../stores/project-store.ts";

type Parts = {
  readonly projects: ProjectStore;
  readonly tokens: Bucket<TokenRecord>;
  readonly settings: Bucket<ProjectRecord>;
};

/** Writers of one key at a time are a handful of processes; each round one of them wins. */
const maxRounds = 20;
/** Projects that are compared together. */
const atATime = 200;

const tokenRecord = (projectId: ProjectId, token: TokenEntry): TokenRecord => ({
  id: token.id,
  projectId,
  scopes: [...token.scopes],
  ...(token.expiresAt && { expiresAt: token.expiresAt.toISOString() }),
});

const settingsRecord = ({ _id, openRegistration, protectedMetadata }: ProjectDocument): ProjectRecord => ({
  id: _id,
  openRegistration,
  ...(protectedMetadata && { protectedMetadata: [...protectedMetadata] }),
});

const wantedTokens = (project: ProjectDocument): TokenEntry[] =>
  project.deletedAt ? [] : project.tokens.filter(({ revokedAt }) => revokedAt === undefined);

/**
 * Brings an entry to what the database says. The database is read after the entry's revision, and the entry is written only onto that
 * revision: whoever writes last has seen everything that was decided before.
 */
const bring = async <Value>(
  bucket: Bucket<Value>,
  key: string,
  wanted: () => Promise<Value | undefined>,
): Promise<void> => {
  for (let round = 0; round < maxRounds; round++) {
    const entry = await bucket.get(key);
    const value = await wanted();
    if (isDeepStrictEqual(entry?.value, value)) return;
    if (value === undefined) await bucket.delete(key);
    else if (entry === undefined) await bucket.create(key, value);
    else await bucket.update(key, value, entry.revision);
  }
  throw new Error(`the entry ${key} changes too often`);
};

/** Everything that is in a bucket now. Waits while the bus is unavailable, and throws when the signal ends that. */
const everything = async <Value>(
  bucket: Bucket<Value>,
  keys: string,
  signal: AbortSignal,
): Promise<Map<string, Value>> => {
  const found = new Map<string, Value>();
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  const watching = bucket.watch(
    ({ key, value }) => {
      if (value === undefined) found.delete(key);
      else found.set(key, value);
    },
    resolve,
    { keys },
  );
  await promise;
  await watching.stop();
  signal.throwIfAborted();
  return found;
};

export type KnownProjects = ReturnType<typeof createKnownProjects>;

/** What the gateways know of projects without asking: their tokens and settings, as entries that follow the database. */
export const createKnownProjects = ({ projects, tokens, settings }: Parts) => {
  const tellToken = (projectId: ProjectId, hash: string): Promise<void> =>
    bring(tokens, tokenKey(hash), async () => {
      const project = await projects.findAny(projectId);
      const token = project && wantedTokens(project).find((candidate) => candidate.hash === hash);
      return token && tokenRecord(projectId, token);
    });

  const tellSettings = (projectId: ProjectId): Promise<void> =>
    bring(settings, projectSettingsKey(projectId), async () => {
      const project = await projects.find(projectId);
      return project && settingsRecord(project);
    });

  const tellAll = async ({ _id, tokens: own }: ProjectDocument): Promise<void> => {
    await tellSettings(_id);
    for (const { hash } of own) await tellToken(_id, hash);
  };

  return {
    tellToken,
    tellSettings,
    tellAll,

    /**
     * Compares all entries with the database, and mends what a crash between the two left. Resolves to the number of entries that
     * had to be looked at again.
     */
    reconcile: async (signal: AbortSignal): Promise<number> => {
      const knownTokens = await everything(tokens, ">", signal);
      const knownSettings = await everything(settings, "*.settings", signal);
      let doubtful = 0;
      const revoked: [ProjectId, TokenId][] = [];
      for (let some = await projects.after(undefined, atATime); some.length > 0; ) {
        for (const project of some) {
          signal.throwIfAborted();
          const { _id, deletedAt } = project;
          const key = projectSettingsKey(_id);
          if (!isDeepStrictEqual(knownSettings.get(key), deletedAt ? undefined : settingsRecord(project))) {
            doubtful++;
            await tellSettings(_id);
          }
          knownSettings.delete(key);
          for (const token of wantedTokens(project)) {
            const tokenIs = tokenRecord(_id, token);
            if (!isDeepStrictEqual(knownTokens.get(tokenKey(token.hash)), tokenIs)) {
              doubtful++;
              await tellToken(_id, token.hash);
            }
            knownTokens.delete(tokenKey(token.hash));
          }
          for (const { id, revokedAt } of project.tokens) if (revokedAt) revoked.push([_id, id]);
        }
        some = await projects.after(some.at(-1)?._id, atATime);
      }
      // What is left is of projects and tokens that are no more.
      for (const [hash, { projectId }] of knownTokens) await tellToken(projectId, hash);
      for (const { id } of knownSettings.values()) await tellSettings(id);
      for (const [projectId, tokenId] of revoked) await projects.forgetToken(projectId, tokenId);
      return doubtful + knownTokens.size + knownSettings.size;
    },
  };
};
