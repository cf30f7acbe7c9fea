import { type DeviceId, type ProjectId, parseTarget, pushTokenHash, type Target } from "@herald/contracts";
import { pairFacet, userFacet } from "./facets.ts";
import { possiblePath } from "./paths.ts";

/** A send as it is asked about. */
export type Asked = { readonly projectId: ProjectId; readonly targets: readonly string[] };

/** What the indexes are asked for a project's sends, all of them together. */
export type Wanted = {
  readonly projectId: ProjectId;
  readonly ids: readonly DeviceId[];
  readonly hashes: readonly string[];
  readonly facets: readonly string[];
};

type Key =
  | { readonly by: "ids"; readonly key: DeviceId }
  | { readonly by: "hashes" | "facets"; readonly key: string }
  /** No device has such a path. */
  | "nothing"
  /** No index answers it, or it is not understood: the path for large sends knows what to do. */
  | "unindexed";

const keyOf = (target: Target): Key => {
  switch (target.kind) {
    case "device":
      return { by: "ids", key: target.id };
    case "token":
      return { by: "hashes", key: pushTokenHash(target.token) };
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

const keysOf = ({ targets }: Asked): readonly Key[] =>
  targets.map((source) => {
    const parsed = parseTarget(source);
    return "target" in parsed ? keyOf(parsed.target) : "unindexed";
  });

/** One send: its keys by the position of their target; undefined where no index answers one of them. */
type Plan = { readonly projectId: ProjectId; readonly keys: readonly Exclude<Key, "unindexed">[] } | undefined;

const isIndexed = (keys: readonly Key[]): keys is readonly Exclude<Key, "unindexed">[] => !keys.includes("unindexed");

export const planOf = (asked: Asked): Plan => {
  const keys = keysOf(asked);
  return isIndexed(keys) ? { projectId: asked.projectId, keys } : undefined;
};

/** What to ask the indexes, by project. */
export const wantedBy = (plans: readonly Plan[]): Wanted[] => {
  const projects = new Map<ProjectId, { ids: Set<DeviceId>; hashes: Set<string>; facets: Set<string> }>();
  for (const plan of plans) {
    if (!plan) continue;
    const known = projects.get(plan.projectId);
    const wanted = known ?? { ids: new Set(), hashes: new Set(), facets: new Set() };
    projects.set(plan.projectId, wanted);
    for (const key of plan.keys) {
      if (key === "nothing") continue;
      if (key.by === "ids") wanted.ids.add(key.key);
      else wanted[key.by].add(key.key);
    }
  }
  return [...projects].map(([projectId, { ids, hashes, facets }]) => ({
    projectId,
    ids: [...ids],
    hashes: [...hashes],
    facets: [...facets],
  }));
};

/** The devices of a send, each once, and which of its targets, by position, named one. `rows`: by the key that named them. */
export const assign = <Row extends { readonly _id: DeviceId }>(
  plan: NonNullable<Plan>,
  rows: ReadonlyMap<string, readonly Row[]>,
): { readonly devices: readonly Row[]; readonly matched: ReadonlySet<number> } => {
  const devices = new Map<DeviceId, Row>();
  const matched = new Set<number>();
  for (const [at, key] of plan.keys.entries()) {
    if (key === "nothing") continue;
    for (const row of rows.get(key.key) ?? []) {
      devices.set(row._id, row);
      matched.add(at);
    }
  }
  return { devices: [...devices.values()], matched };
};
