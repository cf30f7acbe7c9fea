import { isObject } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** Data that a client writes about its device. */
export type ClientData = {
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly identifiers?: Readonly<Record<string, unknown>> | undefined;
};

/** `User_ID` and `userid` look like `user_id` to a person who writes targets, so they count as the same. */
const normalized = (key: string): string => key.toLowerCase().replaceAll("_", "");

/** Protected paths as a tree of normalized keys: a leaf protects everything below it. */
type Tree = Map<string, Tree>;

const treeOf = (paths: readonly string[]): Tree => {
  const root: Tree = new Map();
  for (const path of paths) {
    let at = root;
    for (const key of path.split(".").map(normalized)) {
      const next: Tree = at.get(key) ?? new Map();
      at.set(key, next);
      at = next;
    }
    // Marks a leaf, which protects deeper paths too.
    at.set("", new Map());
  }
  return root;
};

const isLeaf = (tree: Tree): boolean => tree.has("");

/** Splits a merge patch into the allowed part and the protected paths. */
const splitProtected = (
  data: Readonly<Record<string, unknown>>,
  tree: Tree,
  path: string,
): { kept: Record<string, unknown>; ignored: string[] } => {
  const kept: [string, unknown][] = [];
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(data)) {
    const below = tree.get(normalized(key));
    const here = `${path}.${key}`;
    if (below === undefined) kept.push([key, value]);
    // An object is merged, so the protected path below can be cut out; any other value would replace that path too.
    else if (isLeaf(below) || !isObject(value)) ignored.push(here);
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
  const tree = treeOf(protectedPaths);
  const sifted = [
    metadata && splitProtected(metadata, tree, "metadata"),
    identifiers && splitProtected(identifiers, tree, "identifiers"),
  ];
  return {
    metadata: sifted[0]?.kept,
    identifiers: sifted[1]?.kept,
    ignored: sifted.flatMap((one) => one?.ignored ?? []),
  };
};

/** @throws HeraldError `metadata-protected` when a client writes a path that only a project token may write. */
export const rejectProtected = (data: ClientData, protectedPaths: readonly string[] | undefined): void => {
  const { ignored } = withoutProtected(data, protectedPaths);
  if (ignored.length > 0)
    throw new HeraldError(
      "metadata-protected",
      ignored.map(
        (path) =>
          `${path}: is protected; only your backend can write it, with a project token. To name the user, send a \`user_token\``,
      ),
    );
};
