import {
  bucketOf,
  type DeviceId,
  type Platform,
  type ProjectId,
  type PushKey,
  pushTokenHash,
  type RecipientKind,
  type Target,
} from "@herald/contracts";
import { createYieldIfDue } from "@herald/kit";
import {
  anyExisting,
  deadlineOptions,
  findBatched,
  findByIds,
  findSome,
  guardStore,
  type IndexSpec,
  indexName,
} from "@herald/mongo";
import { noZone } from "@herald/rules";
import type { Db, Document, Filter } from "mongodb";
import { type DeviceLookup, isDirect, type Needed, neededBy, outermost, type WantedKeys } from "../domain/audience.ts";
import { tokenFacet } from "../domain/facets.ts";
import { type BucketRange, bucketsOf, sampledBuckets, sampleEvery } from "../domain/partition-batches.ts";
import { type AskedOfDevices, type AudienceRow, audienceFields, readAudienceRow, ruleFields } from "./audience-row.ts";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";
import { deviceCollection } from "./device-store.ts";

const platforms: readonly Platform[] = ["ios", "android", "web"];

/** Up to this many ids share a command with the ids of other pages. Most small sends have one id. */
const fewIds = 10;

/** A whole page: a second batch would cost as much as the first. */
const batchSize = 10_000;

/** Devices of these zones; undefined: of any. */
const inZones = (zones: readonly string[] | undefined) =>
  zones ? { timeZone: { $in: zones.map((zone) => (zone === noZone ? null : zone)) } } : {};

type Query = { readonly filter: Filter<DeviceDocument>; readonly hint: string };

/** Of the facets only those that decide: a device has up to 64 of 300 bytes, and anybody may register devices. */
const projectionOf = ({ paths, facets }: Needed): Document => ({
  ...Object.fromEntries(paths.map((path) => [path, 1])),
  ...(facets.length > 0 && { facets: { $setIntersection: ["$facets", { $literal: facets }] } }),
});

/** No path contains another, see {@link neededBy}. */
const fieldsWith = ({ devicePaths, rules }: AskedOfDevices, needed?: Needed): Document => ({
  ...audienceFields,
  ...(rules && ruleFields),
  ...(needed && projectionOf(needed)),
  ...(devicePaths &&
    Object.fromEntries(outermost([...devicePaths, ...(needed?.paths ?? [])]).map((path) => [path, 1]))),
});

/** What decides which targets of a lookup match a device. Undefined: all of them match all its devices. */
const neededFor = (lookup: DeviceLookup, targets: readonly Target[]): Needed | undefined => {
  const decidesAlone = lookup.targets.length === 1 || (lookup.by === "facets" && lookup.facets.length === 1);
  if (lookup.by === "ids" || lookup.by === "tokens" || (lookup.by !== "conditions" && decidesAlone)) return undefined;
  return neededBy(lookup.targets.flatMap((at) => targets[at] ?? []));
};

/** A list, not a range: with two bounds a multikey index would scan the whole facet. */
const inBuckets = (buckets: readonly number[] | undefined) => (buckets ? { bucket: { $in: [...buckets] } } : {});

const queryOf = (
  projectId: ProjectId,
  lookup: DeviceLookup,
  buckets: readonly number[] | undefined,
  zones: readonly string[] | undefined,
): Query | undefined => {
  const query = queryOfTargets(projectId, lookup, buckets);
  return query && zones ? { ...query, filter: { ...query.filter, ...inZones(zones) } as Query["filter"] } : query;
};

const queryOfTargets = (
  projectId: ProjectId,
  lookup: DeviceLookup,
  buckets: readonly number[] | undefined,
): Query | undefined => {
  switch (lookup.by) {
    case "all":
      return {
        filter: { projectId, ...inBuckets(buckets) },
        hint: indexName(deviceIndexes.bucket),
      };
    case "facets": {
      const [facet] = lookup.facets;
      const { also, checked } = lookup;
      const several = lookup.facets.length > 1 || checked !== undefined;
      const one = also === undefined ? facet : { $all: [also, facet] };
      // `$not` and `$ne`, because PostgreSQL would ask the index for an equal value, too: at ten times the cost.
      const some = { $in: [...lookup.facets], ...(checked !== undefined && { $not: { $ne: checked } }) };
      return {
        filter: { projectId, facets: several ? some : one, ...inBuckets(buckets) },
        hint: indexName(deviceIndexes.facets),
      };
    }
    case "conditions":
      return {
        filter: { projectId, ...(lookup.facets && { facets: { $in: [...lookup.facets] } }), ...inBuckets(buckets) },
        hint: indexName(lookup.facets ? deviceIndexes.facets : deviceIndexes.bucket),
      };
    case "ids": {
      const wanted = buckets && new Set(buckets);
      const ids = wanted ? lookup.ids.filter((id) => wanted.has(bucketOf(id))) : lookup.ids;
      if (ids.length === 0) return undefined;
      return { filter: { projectId, _id: { $in: [...ids] } }, hint: indexName(deviceIndexes.list) };
    }
    case "tokens":
      return {
        filter: {
          projectId,
          platform: { $in: [...platforms] },
          tokenHash: anyExisting(lookup.hashes),
          ...inBuckets(buckets),
        },
        hint: indexName(deviceIndexes.token),
      };
  }
};

/** How the devices of recipients are found, by the kind of their targets. */
const recipientQueries: Readonly<
  Record<RecipientKind, { index?: IndexSpec; filter: (keys: readonly string[]) => Filter<DeviceDocument> }>
> = {
  // Without a hint, as `findByIds`.
  device: { filter: (keys) => ({ _id: { $in: keys as DeviceId[] } }) },
  token: {
    index: deviceIndexes.token,
    filter: (keys) => ({ platform: { $in: [...platforms] }, tokenHash: anyExisting(keys.map(pushTokenHash)) }),
  },
  // One user may have very many devices: their page is in the order of the index.
  user: { index: deviceIndexes.users, filter: (keys) => ({ userId: keys.length === 1 ? keys[0] : anyExisting(keys) }) },
};

/** A part of the devices of one recipient, by their ids: behind `after`, up to and with `upTo`. */
export type IdRange = { readonly after?: DeviceId | undefined; readonly upTo?: DeviceId | undefined };

const inRange = ({ after, upTo }: IdRange) =>
  after === undefined && upTo === undefined
    ? {}
    : { _id: { ...(after !== undefined && { $gt: after }), ...(upTo !== undefined && { $lte: upTo }) } };

/** A device of an installation, with what the targets need of it. */
export type InstalledRow = Pick<DeviceDocument, "_id" | "platform" | "token"> &
  Partial<
    Pick<
      DeviceDocument,
      "app" | "installationKey" | "facets" | "metadata" | "identifiers" | "lastSeenAt" | "lastOpenedAt"
    >
  >;

/** Rows in memory at a time, beside the batch of the driver, which is at most 16 MB. */
const partSize = 100;

const inParts = async <Row>(rows: AsyncIterable<Row>, take: (part: readonly Row[]) => Promise<void>): Promise<void> => {
  let part: Row[] = [];
  for await (const row of rows) {
    part.push(row);
    if (part.length < partSize) continue;
    await take(part);
    part = [];
  }
  if (part.length > 0) await take(part);
};

const tokenOf = (key: PushKey) => ({ tokens: { $elemMatch: { key } } });

/** `zones`: only devices of these time zones. */
type Counted = { readonly projectId: ProjectId; readonly zones?: readonly string[] | undefined };

type PageQuery = Counted &
  AskedOfDevices & {
    readonly targets: readonly Target[];
    /** Rows have their device's token of this push type, if it has one. */
    readonly push?: PushKey | undefined;
  };

export type AudienceStore = ReturnType<typeof createAudienceStore>;

/** The queries of an expansion. Each names its index, and none sorts. */
export const createAudienceStore = (db: Db) => {
  const devices = deviceCollection(db);
  const findWith = (fields: Document) =>
    findBatched<DeviceDocument, keyof AudienceRow | "status">(devices, { ...fields, projectId: 1, status: 1 });
  const findDevice = findWith(audienceFields);
  const findRuled = findWith({ ...audienceFields, ...ruleFields });
  const findActive = async (projectId: ProjectId, ids: readonly DeviceId[], rules: boolean): Promise<AudienceRow[]> => {
    const find = rules ? findRuled : findDevice;
    const found = await find.all(ids.map((_id) => ({ _id, projectId })));
    return found.flatMap((each) => {
      if (each.status === "rejected") throw each.reason;
      return each.value?.status === "active" ? [each.value] : [];
    });
  };

  const count = async (
    { projectId, zones }: Counted,
    lookup: DeviceLookup,
    buckets?: readonly number[],
    limit?: number,
  ) => {
    if (lookup.by === "ids") return lookup.ids.length;
    if (lookup.by === "tokens") return lookup.hashes.length;
    const indexed = lookup.by === "facets" ? { ...lookup, checked: undefined } : lookup;
    const query = queryOf(projectId, indexed, buckets, zones);
    if (!query) return 0;
    const options = { hint: query.hint, ...(limit !== undefined && { limit }), ...deadlineOptions() };
    return devices.countDocuments(query.filter, options);
  };

  return guardStore({
    /**
     * Gives `take` the active devices of a page that a lookup of `targets` finds, unsorted and in parts. What a condition reads of a device
     * may be as large as all its metadata: parts that are taken leave the memory before the next one is read.
     */
    page: async (
      { projectId, targets, devicePaths, rules, zones, push }: PageQuery,
      lookup: DeviceLookup,
      range: BucketRange,
      take: (rows: readonly AudienceRow[]) => Promise<void>,
    ): Promise<void> => {
      const buckets = bucketsOf(range);
      if (lookup.by === "ids" && lookup.ids.length <= fewIds && !buckets && !devicePaths && !zones && !push)
        return take(await findActive(projectId, lookup.ids, rules !== undefined));
      const query = queryOf(projectId, lookup, buckets, zones);
      if (!query) return;
      const needed = neededFor(lookup, targets);
      const options = {
        hint: query.hint,
        projection: { ...fieldsWith({ devicePaths, rules }, needed), ...(push && tokenOf(push)) },
        batchSize,
        ...deadlineOptions(),
      };
      const filter = { ...query.filter, status: "active" as const };
      if (needed) return inParts(devices.find<AudienceRow>(filter, options), take);
      const found = devices.find<Uint8Array>(filter, { ...options, raw: true });
      // A value may be long, too.
      if (devicePaths) return inParts(found, (part) => take(part.map(readAudienceRow)));
      return take((await found.toArray()).map(readAudienceRow));
    },

    /**
     * The active devices by the id, token hash or facet that found them. Undefined when facets find more than `limit` in all. `rules`: rows
     * have what rules ask about.
     */
    named: async (projectId: ProjectId, { ids, hashes, facets }: WantedKeys, limit: number, rules = false) => {
      const byKey = new Map<string, AudienceRow[]>();
      const add = (key: string, row: AudienceRow) => {
        const some = byKey.get(key);
        if (some) some.push(row);
        else byKey.set(key, [row]);
      };
      const find = (filter: Filter<DeviceDocument>, index: IndexSpec, extra: Document) =>
        findSome(
          devices,
          { projectId, status: "active", ...filter },
          {
            hint: indexName(index),
            limit: limit + 1,
            projection: { ...audienceFields, ...(rules && ruleFields), ...extra },
          },
        );
      const [byId, byHash, byFacet] = await Promise.all([
        findActive(projectId, ids, rules),
        hashes.length === 0
          ? []
          : find({ platform: { $in: [...platforms] }, tokenHash: anyExisting(hashes) }, deviceIndexes.token, {
              tokenHash: 1,
            }),
        facets.length === 0
          ? []
          : find({ facets: { $in: [...facets] } }, deviceIndexes.facets, projectionOf({ paths: [], facets })),
      ]);
      if (byFacet.length > limit) return undefined;
      for (const row of byId) add(row._id, row);
      for (const row of byHash) if (row.tokenHash !== undefined) add(row.tokenHash, row);
      for (const row of byFacet) for (const facet of row.facets ?? []) add(facet, row);
      return byKey;
    },

    /** The tokens of a push type of those devices that have one, and none of the key `without`. */
    tokensOf: async (projectId: ProjectId, ids: readonly DeviceId[], key: PushKey, without?: PushKey) => {
      const facets = { $eq: tokenFacet(key), ...(without !== undefined && { $ne: tokenFacet(without) }) };
      const rows = await findByIds(devices, ids, { projectId, facets }, { projection: tokenOf(key) });
      return new Map(rows.flatMap(({ _id, tokens: [token] = [] }) => (token ? [[_id, token] as const] : [])));
    },

    /**
     * The active devices of up to some thousand users, devices or push tokens of one project, at most `limit`. A row tells which of them found
     * it, so the query needs no projection that the database computes, and its rows are read as those of a page. The devices of a single user
     * are sorted by id, and may be those of a range.
     */
    ofRecipients: async (
      projectId: ProjectId,
      kind: RecipientKind,
      keys: readonly string[],
      {
        app,
        range = {},
        limit,
        ...asked
      }: AskedOfDevices & { app?: string | undefined; range?: IdRange; limit?: number } = {},
    ): Promise<AudienceRow[]> => {
      const { index, filter } = recipientQueries[kind];
      const found = await devices
        .find<Uint8Array>(
          { projectId, status: "active", ...filter(keys), ...inRange(range), ...(app !== undefined && { app }) },
          {
            ...(index && { hint: indexName(index) }),
            ...(keys.length === 1 && { sort: { _id: 1 } as const }),
            ...(limit !== undefined && { limit }),
            projection: fieldsWith(asked),
            batchSize,
            ...deadlineOptions(),
            raw: true,
          },
        )
        .toArray();
      const rows: AudienceRow[] = [];
      const yieldIfDue = createYieldIfDue();
      for (const document of found) {
        const due = yieldIfDue();
        if (due) await due;
        rows.push(readAudienceRow(document));
      }
      return rows;
    },

    /** Gives `take` the active devices of installations that their platform's own provider serves, in parts. */
    ofInstallations: (
      projectId: ProjectId,
      keys: readonly string[],
      needed: Needed,
      take: (rows: readonly InstalledRow[]) => Promise<void>,
    ): Promise<void> =>
      inParts(
        devices.find<InstalledRow>(
          { projectId, installationKey: anyExisting(keys), status: "active", provider: { $exists: false } },
          {
            hint: indexName(deviceIndexes.installation),
            projection: { platform: 1, app: 1, token: 1, installationKey: 1, ...projectionOf(needed) },
            batchSize,
            ...deadlineOptions(),
          },
        ),
        take,
      ),

    /** How many devices a lookup may find, up to `limit`. Counts what the index finds: inactive devices too, and all of the zones. */
    countUpTo: (query: Counted, lookup: DeviceLookup, limit: number): Promise<number> =>
      count(query, lookup, undefined, limit),

    /** The same from every 64th bucket, at a 64th of the cost. Stops a little above `upTo`. */
    estimate: async (query: Counted, lookup: DeviceLookup, upTo?: number): Promise<number> => {
      if (isDirect([lookup])) return count(query, lookup);
      const limit = upTo === undefined ? undefined : Math.floor(upTo / sampleEvery) + 1;
      return (await count(query, lookup, sampledBuckets(), limit)) * sampleEvery;
    },
  });
};
