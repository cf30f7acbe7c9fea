import type { ExpandV1 } from "@herald/contracts";
import { type DeviceLookup, isDirect } from "../domain/audience.ts";
import { zoneFacet } from "../domain/facets.ts";
import { type BucketRange, firstPage } from "../domain/partition-batches.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import { type AudienceQuery, sizeOf, type ZonedQuery } from "./read-audience.ts";

/** Of one lookup: the database reads every combination of a facet and a bucket of the page. */
const zonesPerLookup = 64;

/** Whether the database can select all devices of the targets: then their rows need not be checked one by one. */
const selectedBy = ({ lookups: [only, ...others] }: AudienceQuery) => {
  if (!only || others.length > 0 || only.targets.length !== 1) return undefined;
  const { targets } = only;
  if (only.by === "all") return { targets };
  if (only.by !== "facets" || only.facets.length !== 1 || only.also !== undefined) return undefined;
  return { checked: only.facets[0], targets };
};

/** Lookups of all devices of the zones, of which the targets select. */
const zoneLookups = (query: AudienceQuery, zones: readonly string[]): DeviceLookup[] => {
  const found: DeviceLookup[] = [];
  const selected = selectedBy(query);
  for (let from = 0; from < zones.length; from += zonesPerLookup) {
    const facets = zones.slice(from, from + zonesPerLookup).map(zoneFacet);
    if (selected) found.push({ by: "facets", facets, ...selected });
    else found.push({ by: "conditions", facets, targets: [...query.targets.keys()] });
  }
  return found;
};

/** Whether lookups find more devices than `size`, by an estimate that counts no further. */
const findMoreThan = async (audience: AudienceStore, query: AudienceQuery, size: number): Promise<boolean> => {
  let found = 0;
  for (const lookup of query.lookups) {
    if (found > size) break;
    found += await audience.estimate(query, lookup, size);
  }
  return found > size;
};

/** The devices of an expansion. */
type QueryOfExpansion = {
  readonly query: ZonedQuery;
  /** The index of time zones finds its devices. */
  readonly byZone?: boolean;
  /** The buckets of the first page, if they are known by now. */
  readonly first?: BucketRange;
};

/**
 * The devices of a query that an expansion addresses: by the index of time zones, if it is of some zones and the index finds fewer than the
 * targets do. The choice of the first page holds for the others. Both find the same devices.
 */
export const queryOfExpansion = async (
  audience: AudienceStore,
  query: AudienceQuery,
  { zones, byZone: chosen }: ExpandV1["expansion"],
): Promise<QueryOfExpansion> => {
  if (zones === undefined) return { query };
  const zoned = { ...query, lookups: zoneLookups(query, zones) };
  if (chosen !== undefined) return { query: chosen ? zoned : { ...query, zones }, byZone: chosen };
  if (isDirect(query.lookups)) return { query: { ...query, zones }, byZone: false };
  const size = await sizeOf(audience, zoned);
  const byZone = query.lookups.every(({ by }) => by === "all") || (await findMoreThan(audience, query, size));
  return byZone ? { query: zoned, byZone, first: firstPage(size) } : { query: { ...query, zones }, byZone };
};
