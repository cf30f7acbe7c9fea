import { isObject } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** What a client says of its device. */
export type ClientData = {
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly identifiers?: Readonly<Record<string, unknown>> | undefined;
};

/** `User_ID` and `userid` read as `user_id` to the person who targets it, so they are the same here. */
const normalized = (key: string): string => key.toLowerCase().replaceAll("_", "");

/** Protected paths as a tree of plain keys: a leaf protects all that is below it. */
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
    // A leaf beside deeper paths protects them too.
    at.set("", new Map());
  }
  return root;
};

const isLeaf = (tree: Tree): boolean => tree.has("");

/** What may stay of a merge patch, and the paths that may not. */
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
    // An object only merges into what is above a protected path; any other value would replace that with the path.
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
 * What a client may write of its device's data, and the paths that only the project's token writes, such as `metadata.user_id`.
 * What is stored makes no difference, so nothing can be guessed by it.
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

/** @throws HeraldError `metadata-protected` when a client writes what only the project's token may. */
export const rejectProtected = (data: ClientData, protectedPaths: readonly string[] | undefined): void => {
  const { ignored } = withoutProtected(data, protectedPaths);
  if (ignored.length > 0)
    throw new HeraldError(
      "metadata-protected",
      ignored.map(
        (path) =>
          `${path}: is protected; your backend writes it with the project's token. To say who the user is, send a \`user_token\``,
      ),
    );
};
