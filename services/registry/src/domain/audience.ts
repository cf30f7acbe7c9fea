import { type DeviceId, pushTokenHash, type Target } from "@herald/contracts";
import { pairFacet, topicFacet } from "./facets.ts";

/** One question to the database whose answers are devices that some of the targets name. */
export type Lookup = (
  | { readonly by: "all" }
  | { readonly by: "ids"; readonly ids: readonly DeviceId[] }
  | { readonly by: "tokens"; readonly hashes: readonly string[] }
  | { readonly by: "facets"; readonly facets: readonly string[] }
  | { readonly by: "value"; readonly of: "metadata" | "identifiers"; readonly path: string; readonly value: string }
) & {
  /** Which targets its answers decide, as positions in the notification's list. */
  readonly targets: readonly number[];
};

/** One query may name so many facets: with a page's buckets the database walks their product. */
const facetsPerLookup = 64;

/** Paths that no document can have: a database would read them as operators, or refuse them. */
const possiblePath = (path: string): boolean =>
  path.split(".").every((key) => key !== "" && !key.startsWith("$") && !key.includes("\0"));

/**
 * The lookups that find every device the targets name. Together they may find a device more than once.
 * `all` finds what others would, so then only values too long for a facet are looked up beside it.
 */
export const audienceOf = (targets: readonly Target[]): Lookup[] => {
  const everyone = targets.some(({ kind }) => kind === "all");
  const ids = new Map<DeviceId, number[]>();
  const tokens = new Map<string, number[]>();
  const facets = new Map<string, number[]>();
  const values: Lookup[] = [];
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
      case "pair": {
        const { of, path, value } = target;
        const facet = pairFacet(of, path, value);
        if (facet !== undefined) add(facets, facet, at);
        else if (possiblePath(path)) values.push({ by: "value", of, path, value, targets: [at] });
        break;
      }
    }
  }

  const lookups: Lookup[] = [...values];
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
