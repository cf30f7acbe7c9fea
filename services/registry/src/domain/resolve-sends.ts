import { type DeviceId, type ProjectId, parseTarget } from "@herald/contracts";
import { keyOf, type TargetKey } from "./audience.ts";

export type SendTargets = { readonly projectId: ProjectId; readonly targets: readonly string[] };

/** The keys of all sends of a project. */
export type WantedKeys = {
  readonly projectId: ProjectId;
  readonly ids: readonly DeviceId[];
  readonly hashes: readonly string[];
  readonly facets: readonly string[];
};

/** The keys of a send, by the position of their target; undefined: no index answers one of them. */
type Plan = { readonly projectId: ProjectId; readonly keys: readonly Exclude<TargetKey, "unindexed">[] } | undefined;

export const planOf = ({ projectId, targets }: SendTargets): Plan => {
  const keys: Exclude<TargetKey, "unindexed">[] = [];
  for (const source of targets) {
    const parsed = parseTarget(source);
    // A topic may have many devices.
    const key = "target" in parsed && parsed.target.kind !== "topic" ? keyOf(parsed.target) : "unindexed";
    if (key === "unindexed") return undefined;
    keys.push(key);
  }
  return { projectId, keys };
};

export const wantedKeys = (plans: readonly Plan[]): WantedKeys[] => {
  const known = plans.filter((plan) => plan !== undefined);
  return [...Map.groupBy(known, ({ projectId }) => projectId)].map(([projectId, own]) => {
    const wanted = { ids: new Set<DeviceId>(), hashes: new Set<string>(), facets: new Set<string>() };
    for (const key of own.flatMap(({ keys }) => keys)) {
      if (key === "nothing") continue;
      if (key.by === "ids") wanted.ids.add(key.key);
      else wanted[key.by].add(key.key);
    }
    return { projectId, ids: [...wanted.ids], hashes: [...wanted.hashes], facets: [...wanted.facets] };
  });
};

/** The devices of a send, each once, and the positions of the targets that matched one. `rows`: by key. */
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
