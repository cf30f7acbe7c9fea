import { type DeviceId, deviceBucket, type Platform, type ProjectId } from "@herald/contracts";
import { findBatched, forCaller, guardStore, type IndexSpec, indexName } from "@herald/mongo";
import type { Db, Document, Filter } from "mongodb";
import type { Lookup } from "../domain/audience.ts";
import { neededPaths } from "../domain/paths.ts";
import { type BucketRange, bucketsOf, sampledBuckets, sampleEvery } from "../domain/plan-pages.ts";
import type { Wanted } from "../domain/resolve-sends.ts";
import { type AudienceRow, audienceFields, readAudienceRow } from "./audience-row.ts";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";
import { deviceCollection } from "./device-store.ts";

const platforms: readonly Platform[] = ["ios", "android", "web"];

/** So few devices by their ids are read with those of other pages: most of what is sent to single devices names one. */
const fewIds = 10;

/** All of a page in one answer: a second one would cost as much as the first. */
const batchSize = 10_000;

type Query = { readonly filter: Filter<DeviceDocument>; readonly hint: string; readonly extra?: Document };

/** The buckets go in as a list: with two bounds a multikey index would walk the whole facet. */
const within = (buckets: readonly number[] | undefined) => (buckets ? { bucket: { $in: [...buckets] } } : {});

const queryOf = (projectId: ProjectId, lookup: Lookup, buckets: readonly number[] | undefined): Query | undefined => {
  switch (lookup.by) {
    case "all":
      return {
        filter: { projectId, ...within(buckets) },
        hint: indexName(deviceIndexes.bucket),
        ...(lookup.targets.length > 1 && { extra: { facets: 1 } }),
      };
    case "facets": {
      const [facet] = lookup.facets;
      const several = lookup.facets.length > 1;
      return {
        filter: { projectId, facets: several ? { $in: [...lookup.facets] } : facet, ...within(buckets) },
        hint: indexName(deviceIndexes.facets),
        ...(several && { extra: { facets: 1 } }),
      };
    }
    case "conditions":
      return {
        filter: { projectId, ...(lookup.facets && { facets: { $in: [...lookup.facets] } }), ...within(buckets) },
        hint: indexName(lookup.facets ? deviceIndexes.facets : deviceIndexes.bucket),
        extra: Object.fromEntries(neededPaths(lookup.conditions).map((path) => [path, 1])),
      };
    case "ids": {
      const wanted = buckets && new Set(buckets);
      const ids = wanted ? lookup.ids.filter((id) => wanted.has(deviceBucket(id))) : lookup.ids;
      if (ids.length === 0) return undefined;
      return { filter: { projectId, _id: { $in: [...ids] } }, hint: indexName(deviceIndexes.list) };
    }
    case "tokens":
      return {
        filter: {
          projectId,
          platform: { $in: [...platforms] },
          tokenHash: { $in: [...lookup.hashes] },
          ...within(buckets),
        },
        hint: indexName(deviceIndexes.token),
      };
  }
};

export type AudienceStore = ReturnType<typeof createAudienceStore>;

/** The questions of an expansion to the devices: each names its index, and none sorts. */
export const createAudienceStore = (db: Db) => {
  const devices = deviceCollection(db);
  const findDevice = findBatched<DeviceDocument, keyof AudienceRow | "status">(devices, {
    ...audienceFields,
    projectId: 1,
    status: 1,
  });
  const few = async (projectId: ProjectId, ids: readonly DeviceId[]): Promise<AudienceRow[]> => {
    const found = await Promise.all([...new Set(ids)].map((_id) => findDevice({ _id, projectId })));
    return found.filter((row) => row?.status === "active").filter((row) => row !== null);
  };

  return guardStore({
    /** The active devices of a page that a lookup finds, in no order. */
    page: async (projectId: ProjectId, lookup: Lookup, range: BucketRange): Promise<AudienceRow[]> => {
      const buckets = bucketsOf(range);
      if (lookup.by === "ids" && lookup.ids.length <= fewIds && !buckets) return few(projectId, lookup.ids);
      const query = queryOf(projectId, lookup, buckets);
      if (!query) return [];
      const options = {
        hint: query.hint,
        projection: { ...audienceFields, ...query.extra },
        batchSize,
        ...forCaller(),
      };
      const filter = { ...query.filter, status: "active" as const };
      if (query.extra) return devices.find<AudienceRow>(filter, options).toArray();
      const rows = await devices.find<Uint8Array>(filter, { ...options, raw: true }).toArray();
      return rows.map(readAudienceRow);
    },

    /**
     * The active devices that an index finds by what some sends of a project name, by the id, token hash or facet that named them.
     * Undefined when facets find more than `limit`: then it is not known whose are missing.
     */
    named: async (
      { projectId, ids, hashes, facets }: Wanted,
      limit: number,
    ): Promise<ReadonlyMap<string, readonly AudienceRow[]> | undefined> => {
      const byKey = new Map<string, AudienceRow[]>();
      const add = (key: string, row: AudienceRow) => {
        const some = byKey.get(key);
        if (some) some.push(row);
        else byKey.set(key, [row]);
      };
      const find = (filter: Filter<DeviceDocument>, index: IndexSpec, extra: Document) =>
        devices
          .find(
            { projectId, status: "active", ...filter },
            {
              hint: indexName(index),
              projection: { ...audienceFields, ...extra },
              limit: limit + 1,
              batchSize: limit + 1,
            },
          )
          .toArray() as Promise<(AudienceRow & Pick<DeviceDocument, "tokenHash">)[]>;
      const [byId, byHash, byFacet] = await Promise.all([
        few(projectId, ids),
        hashes.length === 0
          ? []
          : find({ platform: { $in: [...platforms] }, tokenHash: { $in: [...hashes] } }, deviceIndexes.token, {
              tokenHash: 1,
            }),
        facets.length === 0 ? [] : find({ facets: { $in: [...facets] } }, deviceIndexes.facets, { facets: 1 }),
      ]);
      if (byFacet.length > limit) return undefined;
      for (const row of byId) add(row._id, row);
      for (const row of byHash) if (row.tokenHash !== undefined) add(row.tokenHash, row);
      const wanted = new Set(facets);
      for (const row of byFacet) for (const facet of row.facets ?? []) if (wanted.has(facet)) add(facet, row);
      return byKey;
    },

    /** How many devices a lookup may find, exactly up to `limit`, from there on `limit` or more. */
    countUpTo: async (projectId: ProjectId, lookup: Lookup, limit: number): Promise<number> => {
      if (lookup.by === "ids") return lookup.ids.length;
      if (lookup.by === "tokens") return lookup.hashes.length;
      const { filter, hint } = countable(projectId, lookup, undefined);
      return devices.countDocuments(filter, { hint, limit, ...forCaller() });
    },

    /** About how many devices a lookup may find, from a part of the buckets: its cost is a 64th of counting them. */
    estimate: async (projectId: ProjectId, lookup: Lookup): Promise<number> => {
      if (lookup.by === "ids") return lookup.ids.length;
      if (lookup.by === "tokens") return lookup.hashes.length;
      const { filter, hint } = countable(projectId, lookup, sampledBuckets());
      return (await devices.countDocuments(filter, { hint, ...forCaller() })) * sampleEvery;
    },
  });
};

/** What has no facet reads every device, so its pages are those of all. Inactive devices count: the index does not know. */
const countable = (
  projectId: ProjectId,
  lookup: Extract<Lookup, { by: "all" | "facets" | "conditions" }>,
  buckets: readonly number[] | undefined,
): Query => {
  const facets = "facets" in lookup ? lookup.facets : undefined;
  const hint = facets ? deviceIndexes.facets : deviceIndexes.bucket;
  return {
    filter: {
      projectId,
      ...(facets && { facets: { $in: [...facets] } }),
      ...within(buckets),
    },
    hint: indexName(hint),
  };
};
