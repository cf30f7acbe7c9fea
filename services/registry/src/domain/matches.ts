import type { AppData, DeviceId, Platform, Target } from "@herald/contracts";
import { type DeviceLookup, keyOf, storedTimes } from "./audience.ts";
import { evaluateCondition } from "./evaluate-condition.ts";
import { literal, scalarText, topicFacet } from "./facets.ts";

/** The fields that targets match. Metadata and identifiers are needed only for conditions and for values too long for a facet. */
export type Candidate = {
  readonly id: DeviceId;
  readonly platform: Platform;
  readonly app?: string;
  readonly token: string;
  readonly facets: ReadonlySet<string>;
  readonly metadata?: AppData;
  readonly identifiers?: AppData;
  readonly lastSeenAt?: Date;
  readonly lastOpenedAt?: Date;
};

/** The value at a path of keys joined by `.`; arrays are not entered. */
const valueAt = (data: unknown, path: string): unknown => {
  let at = data;
  // Does not split the path: it may have a thousand keys, and most devices lack the first.
  for (let from = 0; from <= path.length; ) {
    const dot = path.indexOf(".", from);
    const key = path.slice(from, dot < 0 ? undefined : dot);
    if (typeof at !== "object" || at === null || Array.isArray(at) || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
    if (dot < 0) break;
    from = dot + 1;
  }
  return at;
};

/** Whether the target matches the device, active or not. `now`: milliseconds since 1970, for conditions with relative times. */
export const matches = (target: Target, device: Candidate, now = Date.now()): boolean => {
  if (target.kind === "all") return true;
  if (target.kind === "token") return device.token === target.token;
  if (target.kind === "condition")
    return evaluateCondition(target.condition, {
      platform: device.platform,
      app: device.app,
      inTopic: (name) => device.facets.has(topicFacet(name)),
      value: (of, path) => literal(valueAt(device[of], path)),
      exists: (of, path) => (valueAt(device[of], path) ?? null) !== null,
      time: (field) => device[storedTimes[field]]?.getTime(),
      now,
    });
  const key = keyOf(target);
  if (typeof key === "object") return key.by === "ids" ? device.id === key.key : device.facets.has(key.key);
  return target.kind === "pair" && scalarText(valueAt(device[target.of], target.path)) === target.value;
};

/** All keys of the devices of a page: a thousand targets then need a thousand look-ups, not a million. */
const keysOfDevices = (devices: readonly Candidate[]) => ({
  ids: new Set<string>(devices.map(({ id }) => id)),
  tokens: new Set(devices.map(({ token }) => token)),
  facets: new Set(devices.flatMap(({ facets }) => [...facets])),
});

type CheckOptions<Row> = {
  readonly targets: readonly Target[];
  readonly candidateOf: (row: Row) => Candidate;
  readonly yieldIfDue: () => Promise<void> | undefined;
};

/** The rows of a lookup that one of its targets matches, and the positions of the targets that matched a row. */
export const checkMatches = async <Row>(
  lookup: DeviceLookup,
  rows: readonly Row[],
  { targets, candidateOf, yieldIfDue }: CheckOptions<Row>,
): Promise<{ readonly found: readonly Row[]; readonly matched: readonly number[] }> => {
  // Only lookups for conditions may find devices that no target matches: the database cannot evaluate conditions.
  if (lookup.by !== "conditions") return { found: rows, matched: matchedTargets(lookup, targets, rows, candidateOf) };
  const matched = new Set<number>();
  const found: Row[] = [];
  for (const row of rows) {
    const candidate = candidateOf(row);
    let isMatched = false;
    for (const at of lookup.targets) {
      const due = yieldIfDue();
      if (due) await due;
      const target = targets[at];
      if (!target || (isMatched && matched.has(at)) || !matches(target, candidate)) continue;
      isMatched = true;
      matched.add(at);
    }
    if (isMatched) found.push(row);
  }
  return { found, matched: [...matched] };
};

/** Most lookups are decided without a check of each device. */
const matchedTargets = <Row>(
  lookup: DeviceLookup,
  targets: readonly Target[],
  found: readonly Row[],
  candidateOf: (row: Row) => Candidate,
): readonly number[] => {
  if (found.length === 0) return [];
  if (lookup.targets.length === 1 || (lookup.by === "facets" && lookup.facets.length === 1)) return lookup.targets;
  const keys = keysOfDevices(found.map(candidateOf));
  return lookup.targets.filter((at) => {
    const target = targets[at];
    return target !== undefined && hasKey(target, keys);
  });
};

const hasKey = (target: Target, { ids, tokens, facets }: ReturnType<typeof keysOfDevices>): boolean => {
  if (target.kind === "all") return true;
  if (target.kind === "token") return tokens.has(target.token);
  const key = keyOf(target);
  return typeof key === "object" && (key.by === "ids" ? ids : facets).has(key.key);
};
