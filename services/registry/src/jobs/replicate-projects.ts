import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";
import { type ProjectId, type ProjectRecord, projectSettingsKey, type TokenRecord, tokenKey } from "@herald/contracts";
import type { ProjectDocument, ProjectStore, TokenEntry } from "../stores/project-store.ts";
import { readBucket, replicateEntry } from "./replicate-entry.ts";

type Value = TokenRecord | ProjectRecord;
/** An entry of a bucket, and what it must contain; undefined: it must not exist. */
type Entry = { readonly bucket: Bucket<Value>; readonly key: string; readonly value: Value | undefined };

/** Projects that are read together. */
const pageSize = 200;

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

export type ProjectReplication = ReturnType<typeof createProjectReplication>;

/** Replicates tokens and settings of projects from the database into key-value buckets, which the gateways watch. */
export const createProjectReplication = (deps: {
  readonly projects: ProjectStore;
  readonly tokens: Bucket<TokenRecord>;
  readonly settings: Bucket<ProjectRecord>;
}) => {
  const { projects } = deps;
  const tokens = deps.tokens as unknown as Bucket<Value>;
  const settings = deps.settings as unknown as Bucket<Value>;

  const entriesOf = (project: ProjectDocument): Entry[] => {
    const { _id, deletedAt } = project;
    return [
      { bucket: settings, key: projectSettingsKey(_id), value: deletedAt ? undefined : settingsRecord(project) },
      ...project.tokens.map((token) => ({
        bucket: tokens,
        key: tokenKey(token.hash),
        value: deletedAt || token.revokedAt ? undefined : tokenRecord(_id, token),
      })),
    ];
  };

  const replicate = (projectId: ProjectId, { bucket, key }: Omit<Entry, "value">): Promise<void> =>
    replicateEntry(bucket, key, async () => {
      const project = await projects.findAny(projectId);
      return project && entriesOf(project).find((one) => one.bucket === bucket && one.key === key)?.value;
    });

  return {
    replicateToken: (projectId: ProjectId, hash: string) =>
      replicate(projectId, { bucket: tokens, key: tokenKey(hash) }),
    replicateSettings: (projectId: ProjectId) =>
      replicate(projectId, { bucket: settings, key: projectSettingsKey(projectId) }),
    replicateProject: async (project: ProjectDocument): Promise<void> => {
      for (const entry of entriesOf(project)) await replicate(project._id, entry);
    },

    /** Compares all entries with the database and repairs those that a crash left stale. Resolves to how many it checked again. */
    reconcile: async (signal: AbortSignal): Promise<number> => {
      const stored = new Map([
        [tokens, await readBucket(tokens, ">", signal)],
        [settings, await readBucket(settings, "*.settings", signal)],
      ]);
      let stale = 0;
      for (let page = await projects.after(undefined, pageSize); page.length > 0; ) {
        for (const project of page) {
          signal.throwIfAborted();
          for (const entry of entriesOf(project)) {
            const values = stored.get(entry.bucket);
            if (!isDeepStrictEqual(values?.get(entry.key), entry.value)) {
              stale++;
              await replicate(project._id, entry);
            }
            values?.delete(entry.key);
          }
          for (const { id, revokedAt } of project.tokens)
            if (revokedAt) await projects.removeRevokedToken(project._id, id);
        }
        page = await projects.after(page.at(-1)?._id, pageSize);
      }
      // The others belong to projects and tokens that no longer exist.
      for (const [bucket, values] of stored)
        for (const [key, value] of values) {
          stale++;
          await replicate("projectId" in value ? value.projectId : value.id, { bucket, key });
        }
      return stale;
    },
  };
};
