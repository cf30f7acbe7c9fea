import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";
import {
  type OperatorRecord,
  type ProjectId,
  type ProjectRecord,
  projectRulesKey,
  projectSettingsKey,
  type RulesRecord,
  type TemplateRecord,
  type TokenRecord,
  templateKey,
  tokenKey,
} from "@herald/contracts";
import type { Logger } from "@herald/kit";
import { hasEnded, installationRow, storedPause } from "../domain/pauses.ts";
import type { OperatorDocument, OperatorStore } from "../stores/operator-store.ts";
import type { ProjectDocument, ProjectStore, TokenEntry } from "../stores/project-store.ts";
import type { TemplateRow, TemplateStore } from "../stores/template-store.ts";

/** Only a handful of processes write one key at the same time, and one of them succeeds in each round. */
const maxRounds = 20;

/**
 * Copies a value from the database into an entry of a bucket; undefined deletes the entry. Reads the entry's revision before the database,
 * and writes only if the revision is the same: the last writer has seen every earlier change of the database.
 */
const replicateEntry = async <Value>(
  bucket: Bucket<Value>,
  key: string,
  read: () => Promise<Value | undefined>,
): Promise<void> => {
  for (let round = 0; round < maxRounds; round++) {
    const entry = await bucket.get(key);
    const value = await read();
    if (isDeepStrictEqual(entry?.value, value)) return;
    if (value === undefined) await bucket.delete(key);
    else if (entry === undefined) await bucket.create(key, value);
    else await bucket.update(key, value, entry.revision);
  }
  throw new Error(`the entry ${key} changes too often`);
};

/** The content of a bucket. Waits while the bus is unavailable; throws when the signal is aborted. */
const readBucket = async <Value>(bucket: Bucket<Value>, keys: string, signal: AbortSignal) => {
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

/** A row names a content that is not stored. */
class MissingContent extends Error {}

/** An entry of a bucket, and what it must contain; undefined: it must not exist. */
type Entry<Value> = {
  readonly bucket: Bucket<Value>;
  readonly key: string;
  readonly value: Value | undefined;
  /** It says that all others were written: where it is missing, they are, or the bucket is new. */
  readonly isLast?: boolean;
};

/** Rows that are read together. */
const pageSize = 200;

/** Replicates rows of the database into entries of key-value buckets, which the gateways watch. */
const createReplication = <Row extends { readonly _id: string }, Value>({
  buckets,
  entriesOf,
  find,
  after,
  rowIdOf,
  settle,
  summaryOf = (value) => value,
}: {
  /** Each with the keys that are replicated into it, and with the bucket that lists the entries' summaries, if these are smaller. */
  readonly buckets: readonly {
    readonly bucket: Bucket<Value>;
    readonly keys: string;
    readonly summaries?: Bucket<Partial<Value>>;
  }[];
  readonly entriesOf: (row: Row) => Entry<Value>[];
  readonly find: (id: Row["_id"]) => Promise<Row | null>;
  /** The next rows by id, also deleted ones. */
  readonly after: (id: Row["_id"] | undefined, limit: number) => Promise<Row[]>;
  readonly rowIdOf: (value: Value) => Row["_id"];
  /** A part of a value that differs if the value does, and has the row's id: what reconciling holds in memory. */
  readonly summaryOf?: (value: Value) => Partial<Value>;
  /** Removes data of the row that was kept only until its entries were removed. */
  readonly settle: (row: Row) => Promise<void>;
}) => {
  const replicateOne = (id: Row["_id"], { bucket, key }: Omit<Entry<Value>, "value">): Promise<void> =>
    replicateEntry(bucket, key, async () => {
      const row = await find(id);
      return row ? entriesOf(row).find((one) => one.bucket === bucket && one.key === key)?.value : undefined;
    });

  return {
    replicateOne,

    replicate: async (row: Row): Promise<void> => {
      for (const entry of entriesOf(row)) await replicateOne(row._id, entry);
      await settle(row);
    },

    /**
     * Compares all entries with the database and repairs those that a crash left stale, but not those whose content is missing. Resolves to
     * how many it checked again.
     */
    reconcile: async (signal: AbortSignal, log: Logger): Promise<number> => {
      const repair = async (id: Row["_id"], entry: Omit<Entry<Value>, "value">) => {
        try {
          await replicateOne(id, entry);
        } catch (err) {
          if (!(err instanceof MissingContent)) throw err;
          log.error({ err, key: entry.key }, "an entry is stale and cannot be repaired");
        }
      };
      const stored = new Map<Bucket<Value>, Map<string, Partial<Value>>>();
      for (const { bucket, keys, summaries = bucket } of buckets)
        stored.set(bucket, await readBucket<Partial<Value>>(summaries as Bucket<Partial<Value>>, keys, signal));
      let stale = 0;
      for (let page = await after(undefined, pageSize); page.length > 0; ) {
        for (const row of page) {
          signal.throwIfAborted();
          for (const entry of entriesOf(row)) {
            const values = stored.get(entry.bucket);
            if (!isDeepStrictEqual(values?.get(entry.key), entry.value && summaryOf(entry.value))) {
              if (!entry.isLast || values?.has(entry.key)) stale++;
              await repair(row._id, entry);
            }
            values?.delete(entry.key);
          }
          await settle(row);
        }
        page = await after(page.at(-1)?._id, pageSize);
      }
      // The remaining entries belong to rows and tokens that no longer exist.
      for (const [bucket, values] of stored)
        for (const [key, value] of values) {
          stale++;
          await repair(rowIdOf(value as Value), { bucket, key });
        }
      return stale;
    },
  };
};

const tokenRecord = (projectId: ProjectId, token: TokenEntry): TokenRecord => ({
  id: token.id,
  projectId,
  scopes: [...token.scopes],
  ...(token.expiresAt && { expiresAt: token.expiresAt.toISOString() }),
  ...(token.createdBy && { createdBy: token.createdBy }),
});

const settingsRecord = ({
  _id,
  openRegistration,
  protectedMetadata,
  limits = {},
  receipts,
  defaultTimeZone,
  approval,
}: ProjectDocument): ProjectRecord => ({
  ...(receipts && { receipts }),
  ...(defaultTimeZone !== undefined && { defaultTimeZone }),
  ...(approval && { approval }),
  id: _id,
  openRegistration,
  protectedMetadata: [...protectedMetadata],
  ...(Object.keys(limits).length > 0 && { limits }),
});

/** Undefined: the project has no rules, and its sends do no work for them. */
const rulesRecord = (project: ProjectDocument, now: Date): RulesRecord | undefined => {
  const { _id, kinds = [], quietHours, ownHours, defaultTimeZone } = project;
  const paused = project.paused && !hasEnded(project.paused, now) && storedPause(project.paused);
  if (_id !== installationRow && kinds.length === 0 && !quietHours && !ownHours && !paused) return undefined;
  return {
    projectId: _id,
    kinds: [...kinds],
    ...(quietHours && { quietHours }),
    ...(ownHours && { ownHours }),
    ...(defaultTimeZone && { timeZone: defaultTimeZone }),
    ...(paused && { paused }),
  };
};

/** The row of all projects, which is stored only while they are paused: its record says that the others are replicated. */
const noPause = { _id: installationRow } as ProjectDocument;

/** Replicates tokens, settings and rules of projects, and the rules of all projects. */
export const createProjectReplication = (deps: {
  readonly projects: ProjectStore;
  readonly tokens: Bucket<TokenRecord>;
  readonly settings: Bucket<ProjectRecord>;
  readonly rules: Bucket<RulesRecord>;
  readonly now: () => Date;
}) => {
  type Value = TokenRecord | ProjectRecord | RulesRecord;
  const { projects, now } = deps;
  const tokens = deps.tokens as unknown as Bucket<Value>;
  const settings = deps.settings as unknown as Bucket<Value>;
  const rules = deps.rules as unknown as Bucket<Value>;
  const find = async (id: ProjectId): Promise<ProjectDocument | null> =>
    (await projects.findAny(id)) ?? (id === installationRow ? noPause : null);
  const ownEntries = (project: ProjectDocument): Entry<Value>[] => [
    {
      bucket: settings,
      key: projectSettingsKey(project._id),
      value: project.deletedAt ? undefined : settingsRecord(project),
    },
    ...project.tokens.map((token) => ({
      bucket: tokens,
      key: tokenKey(token.hash),
      value: project.deletedAt || token.revokedAt ? undefined : tokenRecord(project._id, token),
    })),
  ];
  const { replicateOne, ...replication } = createReplication<ProjectDocument, Value>({
    buckets: [
      { bucket: tokens, keys: ">" },
      { bucket: settings, keys: "*.settings" },
      { bucket: rules, keys: "*.rules" },
    ],
    entriesOf: (project) => [
      {
        bucket: rules,
        key: projectRulesKey(project._id),
        value: project.deletedAt ? undefined : rulesRecord(project, now()),
        isLast: project._id === installationRow,
      },
      ...(project._id === installationRow ? [] : ownEntries(project)),
    ],
    find,
    // The row of all projects last: where its record is, all others are.
    after: async (after, limit) => {
      if (after === installationRow) return [];
      const rows = await projects.after(after, limit);
      return rows.length < limit ? [...rows, await find(installationRow)].flatMap((row) => row ?? []) : rows;
    },
    rowIdOf: (value) => ("projectId" in value ? value.projectId : value.id) as ProjectId,
    // The row of all projects has no tokens.
    settle: async ({ _id, tokens: all = [] }) => {
      for (const { id, revokedAt } of all) if (revokedAt) await projects.removeRevokedToken(_id, id);
    },
  });
  return {
    ...replication,
    replicateToken: (projectId: ProjectId, hash: string) =>
      replicateOne(projectId, { bucket: tokens, key: tokenKey(hash) }),
    replicateSettings: (projectId: ProjectId) =>
      replicateOne(projectId, { bucket: settings, key: projectSettingsKey(projectId) }),
    replicateRules: async (projectId: ProjectId): Promise<void> => {
      const key = projectRulesKey(projectId);
      // A bucket without the record of all projects is new: reconciling writes it, after all others. Until then nothing is sent.
      if (projectId === installationRow && !(await rules.get(key))) return;
      await replicateOne(projectId, { bucket: rules, key });
    },
  };
};

const operatorRecord = (
  { _id: id, name, role, projects, signedOutAt }: OperatorDocument,
  groups: readonly string[] | undefined,
): OperatorRecord => ({
  id,
  name,
  role,
  projects: [...projects],
  ...(groups && { groups: [...groups] }),
  ...(signedOutAt && { signedOutAt: signedOutAt.toISOString() }),
});

/** Replicates operators by the hashes of their tokens. */
export const createOperatorReplication = (operators: OperatorStore, bucket: Bucket<OperatorRecord>) =>
  createReplication<OperatorDocument, OperatorRecord>({
    buckets: [{ bucket, keys: ">" }],
    entriesOf: ({ tokenHash, identityHash, replacedHashes = [], deletedAt, ...operator }) => [
      // A token outlives the membership of a group, which is known only at a sign-in: it has none of the groups' roles.
      ...[{ key: tokenHash }, { key: identityHash, groups: operator.groups }].flatMap(({ key, groups }) =>
        key === undefined ? [] : [{ bucket, key, value: deletedAt ? undefined : operatorRecord(operator, groups) }],
      ),
      ...replacedHashes.map((key) => ({ bucket, key, value: undefined })),
    ],
    find: operators.find,
    after: operators.after,
    rowIdOf: ({ id }) => id,
    settle: async ({ _id, replacedHashes = [], deletedAt }) => {
      if (replacedHashes.length > 0) await operators.forgetReplaced(_id, replacedHashes);
      if (deletedAt) await operators.remove(_id);
    },
  });

/** With the content of its published version; rows that are only compared have none. */
type PublishedRow = TemplateRow & { readonly content?: string | undefined };

/** Replicates the published versions of templates. A version never changes, so its number stands for its content. */
export const createTemplateReplication = (
  templates: TemplateStore,
  bucket: Bucket<TemplateRecord>,
  summaries: Bucket<Omit<TemplateRecord, "content">>,
) =>
  createReplication<PublishedRow, TemplateRecord>({
    buckets: [{ bucket, keys: ">", summaries }],
    entriesOf: ({ projectId, name, published, deletedAt, content = "{}" }) => [
      {
        bucket,
        key: templateKey(projectId, name),
        value:
          published === undefined || deletedAt !== undefined
            ? undefined
            : { projectId, name, version: published.version, content: JSON.parse(content) },
      },
    ],
    summaryOf: ({ content: _, ...summary }) => summary,
    find: async (id) => {
      for (let round = 0; round < maxRounds; round++) {
        const row = await templates.findAny(id);
        if (row?.published === undefined || row.deletedAt !== undefined) return row;
        const content = await templates.content(row.projectId, row.published);
        // Absent: a newer version was published, or the template was deleted, after its row was read.
        if (content !== undefined) return { ...row, content };
      }
      throw new MissingContent(`the content of the template ${id} is missing; publish a new version of it`);
    },
    after: templates.after,
    rowIdOf: ({ projectId, name }) => `${projectId}/${name}`,
    settle: async (row) => {
      if (row.deletedAt) await templates.remove(row);
    },
  });
