import { type AppData, isObject, maxIndexedBytes } from "@herald/contracts";

const prefixes = { metadata: "m:", identifiers: "i:" } as const;
const topicPrefix = "t:";
const userPrefix = "u:";

/** What the index holds for a subscription. */
export const topicFacet = (name: string): string => topicPrefix + name;

/** What the index holds for a device's user. No metadata makes one. */
export const userFacet = (userId: string): string => userPrefix + userId;

/** A device takes part in so many topics and pairs at most: each is an entry of an index that all projects share. */
export const maxFacets = 64;

/** How many facets count towards the limit: the one of its user does not. */
export const countedFacets = (facets: readonly string[]): number =>
  facets.filter((facet) => !facet.startsWith(userPrefix)).length;

/** The names of a device's topics, in the order of their subscription. */
export const topicsOf = (facets: readonly string[]): string[] =>
  facets.filter((facet) => facet.startsWith(topicPrefix)).map((facet) => facet.slice(topicPrefix.length));

/**
 * What the index holds for a value, or undefined where it holds nothing: the value is longer than 256 bytes, or a key of the
 * path has a `=`, which no target can name because it is split at the first one.
 */
export const pairFacet = (of: "metadata" | "identifiers", path: string, value: string): string | undefined => {
  if (path.includes("=") || Buffer.byteLength(value) > maxIndexedBytes) return undefined;
  // A lone surrogate is stored as U+FFFD: what is asked for must be what is found.
  return `${prefixes[of]}${path}=${value}`.toWellFormed();
};

/** A scalar as targets compare it, or undefined for what is none. */
export const scalarText = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;

const collect = (of: "metadata" | "identifiers", data: AppData, path: string, into: string[]): void => {
  for (const [key, value] of Object.entries(data)) {
    const here = path === "" ? key : `${path}.${key}`;
    const text = scalarText(value);
    if (text !== undefined) {
      const facet = pairFacet(of, here, text);
      if (facet !== undefined) into.push(facet);
    } else if (isObject(value)) {
      collect(of, value, here, into);
    }
  }
};

/** The facets of a device: its topics, its user, and each scalar value of its metadata and identifiers. */
export const facetsOf = (device: {
  readonly topics: readonly string[];
  readonly metadata: AppData;
  readonly identifiers: AppData;
  readonly userId?: string | undefined;
}): string[] => {
  const facets = device.topics.map(topicFacet);
  if (device.userId !== undefined) facets.push(userFacet(device.userId));
  collect("metadata", device.metadata, "", facets);
  collect("identifiers", device.identifiers, "", facets);
  return facets;
};
