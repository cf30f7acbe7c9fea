import { type AppData, isObject, type Literal, maxIndexedBytes, type PushKey } from "@herald/contracts";
import { askedIdentifier, identifierMeanings, isComparedByMeaning, noZone } from "@herald/rules";

const prefixes = { metadata: "m:", identifiers: "i:" } as const;
const topicPrefix = "t:";
const userPrefix = "u:";
const tokenPrefix = "p:";
const zonePrefix = "z:";
const localePrefix = "l:";

export const topicFacet = (name: string): string => topicPrefix + name;

export const userFacet = (userId: string): string => userPrefix + userId;

/** Of a device that has a token of the push type. */
export const tokenFacet = (key: PushKey): string => tokenPrefix + key;
export const isTokenFacet = (facet: string): boolean => facet.startsWith(tokenPrefix);

/** Of a device whose time zone has this canonical name, or {@link noZone}. */
export const zoneFacet = (zone: string): string => zonePrefix + zone;

/** The time zone of a device: one name. Absent from devices that did not register since Herald stores it. */
export const zonesOfFacets = (facets: readonly string[]): string[] =>
  facets.filter((facet) => facet.startsWith(zonePrefix)).map((facet) => facet.slice(zonePrefix.length));

/** Facets that Herald adds by itself. */
const ownPrefixes = [userPrefix, tokenPrefix, zonePrefix, localePrefix];
export const isOwnFacet = (facet: string): boolean => ownPrefixes.some((prefix) => facet.startsWith(prefix));

/** Maximum of one device: each facet is an entry of an index that all projects share. */
export const maxFacets = 64;

/** The facets of the user, of push types, of the time zone and of the locale do not count towards the limit. */
export const countedFacets = (facets: readonly string[]): number => facets.filter((facet) => !isOwnFacet(facet)).length;

/** Topic names in the order of subscription. */
export const topicsOfFacets = (facets: readonly string[]): string[] =>
  facets.filter((facet) => facet.startsWith(topicPrefix)).map((facet) => facet.slice(topicPrefix.length));

/** The prefixes of identifiers that are compared by what they mean. */
const meant: Readonly<Record<string, string>> = { current_time_zone: zonePrefix, current_locale: localePrefix };

/**
 * The facet that finds the devices of a pair. Undefined for a value longer than 256 bytes, and for a path with `=`, which no target can
 * contain.
 */
export const pairFacet = (of: "metadata" | "identifiers", path: string, value: string): string | undefined => {
  const asked = of === "identifiers" ? askedIdentifier(path, value) : undefined;
  if (asked !== undefined) return `${meant[path]}${asked}`;
  if (path.includes("=") || Buffer.byteLength(value) > maxIndexedBytes) return undefined;
  // The database stores a lone surrogate as U+FFFD.
  return `${prefixes[of]}${path}=${value}`.toWellFormed();
};

/** A scalar as conditions compare it; undefined for other values. */
export const literal = (value: unknown): Literal | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined;

/** A scalar as targets compare it; undefined for other values. */
export const scalarText = (value: unknown): string | undefined => literal(value)?.toString();

const collect = (of: "metadata" | "identifiers", data: AppData, path: string, into: string[]): void => {
  for (const [key, value] of Object.entries(data)) {
    const here = path === "" ? key : `${path}.${key}`;
    if (of === "identifiers" && isComparedByMeaning(here)) continue;
    const text = scalarText(value);
    if (text !== undefined) {
      const facet = pairFacet(of, here, text);
      if (facet !== undefined) into.push(facet);
    } else if (isObject(value)) {
      collect(of, value, here, into);
    }
  }
};

/** Topics, user, push types, time zone, locale, and each other scalar value of metadata and identifiers. */
export const facetsOf = (device: {
  readonly topics: readonly string[];
  readonly metadata: AppData;
  readonly identifiers: AppData;
  readonly userId?: string | undefined;
  readonly tokens?: readonly { readonly key: PushKey }[] | undefined;
}): string[] => {
  const facets = device.topics.map(topicFacet);
  if (device.userId !== undefined) facets.push(userFacet(device.userId));
  for (const { key } of device.tokens ?? []) facets.push(tokenFacet(key));
  collect("metadata", device.metadata, "", facets);
  collect("identifiers", device.identifiers, "", facets);
  const { current_time_zone: zone, current_locale: locale } = device.identifiers;
  for (const language of identifierMeanings("current_locale", locale)) facets.push(localePrefix + language);
  facets.push(zoneFacet(identifierMeanings("current_time_zone", zone)[0] ?? noZone));
  return facets;
};
