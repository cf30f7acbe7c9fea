import {
  type Condition,
  type ConditionField,
  type DeviceId,
  parseTarget,
  pushTokenHash,
  type Target,
} from "@herald/contracts";
import { hasFewDevices } from "@herald/rules";
import { candidateClauses } from "./evaluate-condition.ts";
import { pairFacet, topicFacet, userFacet } from "./facets.ts";

/** Whether a document can have this path. The database would read other paths as operators, or refuse them. */
export const possiblePath = (path: string): boolean =>
  path.split(".").every((key) => key !== "" && !key.startsWith("$") && !key.includes("\0"));

/**
 * The parts of a device that decide whether targets match it: fields, and facets by name, because a device has up to 64 of them. All else
 * of a device stays in the database, whatever its app has stored there.
 */
export type Needed = { readonly paths: readonly string[]; readonly facets: readonly string[] };

type Collected = { readonly paths: Set<string>; readonly facets: Set<string> };

/** The fields of a stored device that conditions name otherwise. */
export const storedTimes = { last_seen_at: "lastSeenAt", last_opened_at: "lastOpenedAt" } as const;

/** The platform is in every row. */
const addPath = (field: ConditionField, { paths }: Collected): void => {
  if (field.of === "app") paths.add("app");
  else if (field.of !== "platform" && possiblePath(field.path)) paths.add(`${field.of}.${field.path}`);
};

const collect = (condition: Condition, into: Collected): void => {
  switch (condition.kind) {
    case "or":
    case "and":
      for (const part of condition.parts) collect(part, into);
      break;
    case "not":
      collect(condition.part, into);
      break;
    case "topic":
      into.facets.add(topicFacet(condition.name));
      break;
    case "time":
      into.paths.add(storedTimes[condition.field]);
      break;
    case "exists":
      addPath(condition, into);
      break;
    case "compare":
    case "one-of":
      addPath(condition.field, into);
  }
};

/** What targets need. No path contains another: databases refuse such projections. */
export const neededBy = (targets: readonly Target[]): Needed => {
  const collected: Collected = { paths: new Set(), facets: new Set() };
  const { paths, facets } = collected;
  for (const target of targets) {
    const key = keyOf(target);
    if (target.kind === "condition") collect(target.condition, collected);
    else if (target.kind === "pair" && key === "unindexed") paths.add(`${target.of}.${target.path}`);
    else if (target.kind === "token") paths.add("token");
    else if (typeof key === "object" && key.by === "facets") facets.add(key.key);
  }
  return { paths: outermost(paths), facets: [...facets] };
};

/** The paths that no other one contains, each once. */
export const outermost = (all: Iterable<string>): string[] => {
  const paths = new Set(all);
  return [...paths].filter((path) => {
    const keys = path.split(".");
    return !keys.some((_, at) => at > 0 && paths.has(keys.slice(0, at).join(".")));
  });
};

/** One query for devices that some of the targets may match. */
export type DeviceLookup = (
  | { readonly by: "all" }
  | { readonly by: "ids"; readonly ids: readonly DeviceId[] }
  | { readonly by: "tokens"; readonly hashes: readonly string[] }
  /**
   * `also`: of these devices only those that have this one, too, which fewer have. `checked`: only those that have this one, too, which more
   * have; the database reads the devices to see it.
   */
  | {
      readonly by: "facets";
      readonly facets: readonly string[];
      readonly also?: string;
      readonly checked?: string | undefined;
    }
  | {
      /** Conditions, and values that are too long for a facet. */
      readonly by: "conditions";
      /** Each matching device has one of these; undefined: no index narrows the conditions. */
      readonly facets: readonly string[] | undefined;
    }
) & {
  /** Positions of the targets that this query decides. */
  readonly targets: readonly number[];
};

export type TargetKey =
  | { readonly by: "ids"; readonly key: DeviceId }
  | { readonly by: "hashes" | "facets"; readonly key: string }
  /** No device can match. */
  | "nothing"
  /** No index finds the target's devices, or the target does not parse. */
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

/** Maximum number of facets in one query: the database reads every combination of a facet and a bucket of the page. */
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
const conditionLookups = (positioned: readonly PositionedCondition[]): DeviceLookup[] => {
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
  const lookup = (some: readonly PositionedCondition[], facets: readonly string[] | undefined): DeviceLookup => ({
    by: "conditions",
    facets,
    targets: some.map(({ at }) => at),
  });
  return [
    ...packs.map((pack) => lookup([...pack.positioned], [...pack.facets])),
    ...(scanned.length > 0 ? [lookup(scanned, undefined)] : []),
  ];
};

/**
 * The lookups that together find every device of the targets; they may find a device more than once. Beside the target `all`, only
 * conditions and long values need lookups of their own.
 */
export const audienceOf = (targets: readonly Target[]): DeviceLookup[] => {
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
export const isDirect = (lookups: readonly DeviceLookup[]): boolean =>
  lookups.every(({ by }) => by === "ids" || by === "tokens");

type IndexedKey = Exclude<TargetKey, "unindexed">;

/** The parsed targets of a send, and their keys in the same order. Undefined: a target is a topic, or no index finds its devices. */
export const indexedTargets = (
  sources: readonly string[],
): { readonly targets: readonly Target[]; readonly keys: readonly IndexedKey[] } | undefined => {
  const targets: Target[] = [];
  const keys: IndexedKey[] = [];
  for (const source of sources) {
    const parsed = parseTarget(source);
    if (!("target" in parsed) || !hasFewDevices(parsed.target)) return undefined;
    const key = keyOf(parsed.target);
    if (key === "unindexed") return undefined;
    targets.push(parsed.target);
    keys.push(key);
  }
  return { targets, keys };
};

/** What finds the devices of sends: ids, token hashes and facets, each once. */
export type WantedKeys = {
  readonly ids: readonly DeviceId[];
  readonly hashes: readonly string[];
  readonly facets: readonly string[];
};

export const wantedKeys = (keys: Iterable<IndexedKey>): WantedKeys => {
  const wanted = { ids: new Set<DeviceId>(), hashes: new Set<string>(), facets: new Set<string>() };
  for (const key of keys) {
    if (key === "nothing") continue;
    if (key.by === "ids") wanted.ids.add(key.key);
    else wanted[key.by].add(key.key);
  }
  return { ids: [...wanted.ids], hashes: [...wanted.hashes], facets: [...wanted.facets] };
};

/** The devices of a send, each once, and the positions of the targets that matched a device. `rows`: devices by key. */
export const assign = <Row extends { readonly _id: DeviceId }>(
  keys: readonly IndexedKey[],
  rows: ReadonlyMap<string, readonly Row[]>,
): { readonly devices: readonly Row[]; readonly matched: ReadonlySet<number> } => {
  const devices = new Map<DeviceId, Row>();
  const matched = new Set<number>();
  for (const [at, key] of keys.entries()) {
    if (key === "nothing") continue;
    for (const row of rows.get(key.key) ?? []) {
      devices.set(row._id, row);
      matched.add(at);
    }
  }
  return { devices: [...devices.values()], matched };
};
