import { type Condition, candidateClauses, type DeviceId, pushTokenHash, type Target } from "@herald/contracts";
import { pairFacet, topicFacet, userFacet } from "./facets.ts";
import { possiblePath } from "./paths.ts";

/** One query whose results are devices that some of the targets may match. */
export type Lookup = (
  | { readonly by: "all" }
  | { readonly by: "ids"; readonly ids: readonly DeviceId[] }
  | { readonly by: "tokens"; readonly hashes: readonly string[] }
  | { readonly by: "facets"; readonly facets: readonly string[] }
  | {
      /** Also values that are too long for a facet. */
      readonly by: "conditions";
      /** Each matching device has one of these; undefined: no index narrows the conditions. */
      readonly facets: readonly string[] | undefined;
      readonly conditions: readonly Condition[];
    }
) & {
  /** Positions of the targets that it decides. */
  readonly targets: readonly number[];
};

export type TargetKey =
  | { readonly by: "ids"; readonly key: DeviceId }
  | { readonly by: "hashes" | "facets"; readonly key: string }
  /** No device can match. */
  | "nothing"
  /** No index finds its devices, or it does not parse. */
  | "unindexed";

/** The key by which an index finds the devices of a target. */
export const keyOf = (target: Target): TargetKey => {
  switch (target.kind) {
    case "device":
      return { by: "ids", key: target.id };
    case "token":
      return { by: "hashes", key: pushTokenHash(target.token) };
    case "topic":
      return { by: "facets", key: topicFacet(target.name) };
    case "user":
      return { by: "facets", key: userFacet(target.id) };
    case "pair": {
      const facet = pairFacet(target.of, target.path, target.value);
      if (facet !== undefined) return { by: "facets", key: facet };
      return possiblePath(target.path) ? "unindexed" : "nothing";
    }
    default:
      return "unindexed";
  }
};

/** Facets of one query: the database walks their product with the buckets of a page. */
const facetsPerLookup = 64;

/** Each device that fulfils the condition has one of these facets; undefined: no index helps. */
const candidateFacets = (condition: Condition): string[] | undefined => {
  const facets = candidateClauses(condition)?.map((clause) =>
    clause.kind === "topic" ? topicFacet(clause.name) : pairFacet(clause.of, clause.path, clause.value),
  );
  return facets?.every((facet) => facet !== undefined) ? [...new Set(facets)] : undefined;
};

type PositionedCondition = { readonly condition: Condition; readonly at: number };

/** Conditions that an index narrows share lookups of up to 64 facets; all others share one. */
const conditionLookups = (positioned: readonly PositionedCondition[]): Lookup[] => {
  const scanned: PositionedCondition[] = [];
  const packs: { facets: Set<string>; positioned: Set<PositionedCondition> }[] = [];
  for (const one of positioned) {
    const facets = candidateFacets(one.condition);
    if (!facets) scanned.push(one);
    for (const facet of facets ?? []) {
      let pack = packs.at(-1);
      if (!pack || (pack.facets.size >= facetsPerLookup && !pack.facets.has(facet))) {
        pack = { facets: new Set(), positioned: new Set() };
        packs.push(pack);
      }
      pack.facets.add(facet);
      pack.positioned.add(one);
    }
  }
  const lookup = (some: readonly PositionedCondition[], facets: readonly string[] | undefined): Lookup => ({
    by: "conditions",
    facets,
    conditions: some.map(({ condition }) => condition),
    targets: some.map(({ at }) => at),
  });
  return [
    ...packs.map((pack) => lookup([...pack.positioned], [...pack.facets])),
    ...(scanned.length > 0 ? [lookup(scanned, undefined)] : []),
  ];
};

/** The lookups that together find every device of the targets, some more than once. With the target `all` only conditions and long values are looked up too. */
export const audienceOf = (targets: readonly Target[]): Lookup[] => {
  const everyone = targets.some(({ kind }) => kind === "all");
  const found = {
    ids: new Map<DeviceId, number[]>(),
    hashes: new Map<string, number[]>(),
    facets: new Map<string, number[]>(),
  };
  const conditions: PositionedCondition[] = [];
  const decidedByAll: number[] = [];
  for (const [at, target] of targets.entries()) {
    const key = keyOf(target);
    if (key === "nothing") continue;
    if (target.kind === "condition") {
      conditions.push({ condition: target.condition, at });
    } else if (target.kind === "pair" && key === "unindexed") {
      // Shares one scan with the conditions that no index narrows.
      const { of, path, value } = target;
      conditions.push({ condition: { kind: "compare", field: { of, path }, operator: "==", value }, at });
    } else if (everyone || key === "unindexed") {
      decidedByAll.push(at);
    } else {
      const positions: Map<string, number[]> = found[key.by];
      positions.set(key.key, [...(positions.get(key.key) ?? []), at]);
    }
  }
  const { ids, hashes, facets } = found;

  const lookups = conditionLookups(conditions);
  if (decidedByAll.length > 0) lookups.push({ by: "all", targets: decidedByAll });
  if (ids.size > 0) lookups.push({ by: "ids", ids: [...ids.keys()], targets: [...ids.values()].flat() });
  if (hashes.size > 0) lookups.push({ by: "tokens", hashes: [...hashes.keys()], targets: [...hashes.values()].flat() });
  const entries = [...facets];
  for (let from = 0; from < entries.length; from += facetsPerLookup) {
    const some = entries.slice(from, from + facetsPerLookup);
    lookups.push({ by: "facets", facets: some.map(([facet]) => facet), targets: some.flatMap(([, at]) => at) });
  }
  return lookups;
};

/** Every target is a device or a token, so each matches at most a few devices. */
export const isDirect = (lookups: readonly Lookup[]): boolean =>
  lookups.every(({ by }) => by === "ids" || by === "tokens");
