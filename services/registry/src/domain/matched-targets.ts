import type { Target } from "@herald/contracts";
import type { Lookup } from "./audience.ts";
import { pairFacet, topicFacet, userFacet } from "./facets.ts";
import { type Candidate, matches } from "./matches.ts";

/** What the devices of a page have between them, so that a thousand targets are a thousand look-ups and not a million. */
const evidenceOf = (devices: readonly Candidate[]) => ({
  ids: new Set<string>(devices.map(({ id }) => id)),
  tokens: new Set(devices.map(({ token }) => token)),
  facets: new Set(devices.flatMap(({ facets }) => [...facets])),
});

/** Lookups that may find devices which none of their targets names: the database has no answer to what they ask. */
const isRough = ({ by }: Lookup): boolean => by === "conditions";

type Confirming<Row> = {
  readonly targets: readonly Target[];
  readonly candidateOf: (row: Row) => Candidate;
  /** Gives way to other work of the process where that is due. */
  readonly yieldIfDue: () => Promise<void> | undefined;
};

/** What a lookup found and its targets name, and which of the targets, as positions in the notification's list. */
export const confirm = async <Row>(
  lookup: Lookup,
  rows: readonly Row[],
  { targets, candidateOf, yieldIfDue }: Confirming<Row>,
): Promise<{ readonly found: readonly Row[]; readonly matched: readonly number[] }> => {
  if (!isRough(lookup)) return { found: rows, matched: matchedTargets(lookup, targets, rows, candidateOf) };
  const matched = new Set<number>();
  const found: Row[] = [];
  for (const row of rows) {
    const candidate = candidateOf(row);
    let named = false;
    for (const at of lookup.targets) {
      const due = yieldIfDue();
      if (due) await due;
      const target = targets[at];
      if (!target || (named && matched.has(at)) || !matches(target, candidate)) continue;
      named = true;
      matched.add(at);
    }
    if (named) found.push(row);
  }
  return { found, matched: [...matched] };
};

/**
 * Which of a lookup's targets, as positions in the notification's list, named one of the devices that it found. Most lookups are
 * decided without looking at a device.
 */
const matchedTargets = <Row>(
  lookup: Lookup,
  targets: readonly Target[],
  found: readonly Row[],
  candidateOf: (row: Row) => Candidate,
): readonly number[] => {
  if (found.length === 0) return [];
  // It asked for one thing only, so whatever it found is that.
  if (lookup.by === "facets" && lookup.facets.length === 1) return lookup.targets;
  if (lookup.targets.length === 1) return lookup.targets;
  const evidence = evidenceOf(found.map(candidateOf));
  return lookup.targets.filter((at) => {
    const target = targets[at];
    return target !== undefined && isNamed(target, evidence);
  });
};

const isNamed = (target: Target, { ids, tokens, facets }: ReturnType<typeof evidenceOf>): boolean => {
  switch (target.kind) {
    case "all":
      return true;
    case "device":
      return ids.has(target.id);
    case "token":
      return tokens.has(target.token);
    case "topic":
      return facets.has(topicFacet(target.name));
    case "user":
      return facets.has(userFacet(target.id));
    case "pair":
      return facets.has(pairFacet(target.of, target.path, target.value) ?? "");
    case "condition":
      return false; // no evidence decides it: its lookups are rough
  }
};
