import { type Condition, candidateClauses, type DeviceId, pushTokenHash, type Target } from "@herald/contracts";
import { pairFacet, topicFacet, userFacet } from "./facets.ts";
import { possiblePath } from "./paths.ts";

/** One question to the database whose answers are devices that some of the targets name. */
export type Lookup = (
  | { readonly by: "all" }
  | { readonly by: "ids"; readonly ids: readonly DeviceId[] }
  | { readonly by: "tokens"; readonly hashes: readonly string[] }
  | { readonly by: "facets"; readonly facets: readonly string[] }
  | {
      /** Conditions, and values that are too long for a facet. */
      readonly by: "conditions";
      /** Every device that fulfils one of the conditions has one of these; undefined where no index narrows them. */
      readonly facets: readonly string[] | undefined;
      readonly conditions: readonly Condition[];
    }
) & {
  /** Which targets its answers decide, as positions in the notification's list. */
  readonly targets: readonly number[];
};

/** One query may name so many facets: with a page's buckets the database walks their product. */
const facetsPerLookup = 64;

/** The facets of which every device that fulfils the condition has one; undefined where no index helps. */
const candidateFacets = (condition: Condition): string[] | undefined => {
  const facets = candidateClauses(condition)?.map((clause) =>
    clause.kind === "topic" ? topicFacet(clause.name) : pairFacet(clause.of, clause.path, clause.value),
  );
  return facets?.every((facet) => facet !== undefined) ? [...new Set(facets)] : undefined;
};

type Asking = { readonly condition: Condition; readonly at: number };

/** Those that an index narrows share lookups as far as their facets have room in one; all others share a single one. */
const conditionLookups = (asking: readonly Asking[]): Lookup[] => {
  const scanned: Asking[] = [];
  const packs: { facets: Set<string>; asking: Set<Asking> }[] = [];
  for (const one of asking) {
    const facets = candidateFacets(one.condition);
    if (!facets) scanned.push(one);
    for (const facet of facets ?? []) {
      let pack = packs.at(-1);
      if (!pack || (pack.facets.size >= facetsPerLookup && !pack.facets.has(facet))) {
        pack = { facets: new Set(), asking: new Set() };
        packs.push(pack);
      }
      pack.facets.add(facet);
      pack.asking.add(one);
    }
  }
  const lookup = (some: readonly Asking[], facets: readonly string[] | undefined): Lookup => ({
    by: "conditions",
    facets,
    conditions: some.map(({ condition }) => condition),
    targets: some.map(({ at }) => at),
  });
  return [
    ...packs.map((pack) => lookup([...pack.asking], [...pack.facets])),
    ...(scanned.length > 0 ? [lookup(scanned, undefined)] : []),
  ];
};

/**
 * The lookups that find every device the targets name. Together they may find a device more than once.
 * `all` finds what others would, so then only conditions, and values too long for a facet, are looked up beside it.
 */
export const audienceOf = (targets: readonly Target[]): Lookup[] => {
  const everyone = targets.some(({ kind }) => kind === "all");
  const ids = new Map<DeviceId, number[]>();
  const tokens = new Map<string, number[]>();
  const facets = new Map<string, number[]>();
  const conditions: Asking[] = [];
  const decidedByAll: number[] = [];

  const add = <Key>(map: Map<Key, number[]>, key: Key, at: number) => {
    if (everyone) decidedByAll.push(at);
    else map.set(key, [...(map.get(key) ?? []), at]);
  };
  for (const [at, target] of targets.entries()) {
    switch (target.kind) {
      case "all":
        decidedByAll.push(at);
        break;
      case "device":
        add(ids, target.id, at);
        break;
      case "token":
        add(tokens, pushTokenHash(target.token), at);
        break;
      case "topic":
        add(facets, topicFacet(target.name), at);
        break;
      case "user":
        add(facets, userFacet(target.id), at);
        break;
      case "pair": {
        const { of, path, value } = target;
        const facet = pairFacet(of, path, value);
        if (facet !== undefined) add(facets, facet, at);
        // All of them share one scan with the conditions that no index narrows.
        else if (possiblePath(path))
          conditions.push({ condition: { kind: "compare", field: { of, path }, operator: "==", value }, at });
        break;
      }
      case "condition":
        conditions.push({ condition: target.condition, at });
        break;
    }
  }

  const lookups: Lookup[] = conditionLookups(conditions);
  if (decidedByAll.length > 0) lookups.push({ by: "all", targets: decidedByAll });
  if (ids.size > 0) lookups.push({ by: "ids", ids: [...ids.keys()], targets: [...ids.values()].flat() });
  if (tokens.size > 0) lookups.push({ by: "tokens", hashes: [...tokens.keys()], targets: [...tokens.values()].flat() });
  const entries = [...facets];
  for (let from = 0; from < entries.length; from += facetsPerLookup) {
    const some = entries.slice(from, from + facetsPerLookup);
    lookups.push({ by: "facets", facets: some.map(([facet]) => facet), targets: some.flatMap(([, at]) => at) });
  }
  return lookups;
};

/** Whether every target is a device or a token, so that the audience is at most a few devices a target. */
export const isDirect = (lookups: readonly Lookup[]): boolean =>
  lookups.every(({ by }) => by === "ids" || by === "tokens");
