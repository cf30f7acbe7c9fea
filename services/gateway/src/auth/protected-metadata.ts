import { isObject } from "@herald/contracts";

/** Data that a client writes about its device. */
export type ClientData = {
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly identifiers?: Readonly<Record<string, unknown>> | undefined;
};

/** `User_ID` and `userid` look like `user_id` to a person who writes targets, so they count as the same. */
const normalized = (key: string): string => key.toLowerCase().replaceAll("_", "");

/** The normalized keys of a path. A protected path covers everything below it. */
type Path = readonly string[];

/** Splits a merge patch into the allowed part and the protected paths. */
const splitProtected = (
  data: Readonly<Record<string, unknown>>,
  paths: readonly Path[],
  at: string,
): { kept: Record<string, unknown>; ignored: string[] } => {
  const kept: [string, unknown][] = [];
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(data)) {
    const below = paths.filter(([first]) => first === normalized(key)).map((path) => path.slice(1));
    const here = `${at}.${key}`;
    if (below.length === 0) kept.push([key, value]);
    // An object is merged, so the protected path below can be cut out; any other value would replace that path too.
    else if (below.some((path) => path.length === 0) || !isObject(value)) ignored.push(here);
    else {
      const inner = splitProtected(value, below, here);
      ignored.push(...inner.ignored);
      kept.push([key, inner.kept]);
    }
  }
  return { kept: Object.fromEntries(kept), ignored };
};

/**
 * Removes the paths that only a project token may write, such as `metadata.user_id`, and returns them as `ignored`. The result does not
 * depend on stored values, so it reveals nothing about them.
 */
export const withoutProtected = (
  { metadata, identifiers }: ClientData,
  protectedPaths: readonly string[] = [],
): ClientData & { readonly ignored: readonly string[] } => {
  if (protectedPaths.length === 0) return { metadata, identifiers, ignored: [] };
  const paths = protectedPaths.map((path) => path.split(".").map(normalized));
  const split = {
    metadata: metadata && splitProtected(metadata, paths, "metadata"),
    identifiers: identifiers && splitProtected(identifiers, paths, "identifiers"),
  };
  return {
    metadata: split.metadata?.kept,
    identifiers: split.identifiers?.kept,
    ignored: [...(split.metadata?.ignored ?? []), ...(split.identifiers?.ignored ?? [])],
  };
};
