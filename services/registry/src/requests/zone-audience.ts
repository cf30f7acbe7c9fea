import type { ExpandV1 } from "@herald/contracts";
import { type DeviceLookup, isDirect } from "../domain/audience.ts";
import { zoneFacet } from "../domain/facets.ts";
import { smallAudience } from "../domain/partition-batches.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import type { AudienceQuery, ZonedQuery } from "./read-audience.ts";

/** Of one lookup: the database reads every combination of a facet and a bucket of the page. */
const zonesPerLookup = 64;

/** Lookups of all devices of the zones, of which the targets select. */
const zoneLookups = ({ targets, lookups }: AudienceQuery, zones: readonly string[]): DeviceLookup[] => {
  const found: DeviceLookup[] = [];
  for (let from = 0; from < zones.length; from += zonesPerLookup) {
    const facets = zones.slice(from, from + zonesPerLookup).map(zoneFacet);
    const [first] = lookups;
    // Nothing is left to select, so the rows need not be checked one by one.
    if (lookups.length === 1 && first?.by === "all") found.push({ by: "facets", facets, targets: first.targets });
    else found.push({ by: "conditions", facets, targets: [...targets.keys()] });
  }
  return found;
};

const sum = async (lookups: readonly DeviceLookup[], sizeOf: (lookup: DeviceLookup) => Promise<number>) => {
  let size = 0;
  for (const lookup of lookups) size += await sizeOf(lookup);
  return size;
};

/** Whether the index of time zones finds fewer devices than the targets do. */
const isSmallerByZone = async (audience: AudienceStore, query: AudienceQuery, byZone: readonly DeviceLookup[]) => {
  const { lookups } = query;
  if (isDirect(lookups)) return false;
  if (lookups.every(({ by }) => by === "all")) return true;
  const counted = await sum(lookups, (lookup) => audience.countUpTo(query, lookup, smallAudience + 1));
  if (counted <= smallAudience) return false;
  const estimate = (lookup: DeviceLookup) => audience.estimate(query, lookup);
  return (await sum(byZone, estimate)) < (await sum(lookups, estimate));
};

/**
 * The devices of a query that a wave addresses. `byZone`: the index of time zones finds them; the choice of the first page holds for the
 * others. Both find the same devices.
 */
export const queryOfWave = async (
  audience: AudienceStore,
  query: AudienceQuery,
  { zones, byZone: chosen }: NonNullable<ExpandV1["wave"]>,
): Promise<{ readonly query: ZonedQuery; readonly byZone?: boolean }> => {
  if (zones === undefined) return { query };
  const lookups = zoneLookups(query, zones);
  const byZone = chosen ?? (await isSmallerByZone(audience, query, lookups));
  return { query: byZone ? { ...query, lookups } : { ...query, zones }, byZone };
};
