import type { Target } from "@herald/contracts";
import type { Lookup } from "./audience.ts";
import { pairFacet, topicFacet } from "./facets.ts";
import type { Candidate } from "./matches.ts";

/** What the devices of a page have between them, so that a thousand targets are a thousand look-ups and not a million. */
const evidenceOf = (devices: readonly Candidate[]) => ({
  ids: new Set<string>(devices.map(({ id }) => id)),
  tokens: new Set(devices.map(({ token }) => token)),
  facets: new Set(devices.flatMap(({ facets }) => facets)),
});

/**
 * Which of a lookup's targets, as positions in the notification's list, named one of the devices that it found. Most lookups are
 * decided without looking at a device.
 */
export const matchedTargets = <Row>(
  lookup: Lookup,
  targets: readonly Target[],
  found: readonly Row[],
  candidateOf: (row: Row) => Candidate,
): readonly number[] => {
  if (found.length === 0) return [];
  // It asked for one thing only, so whatever it found is that.
  if (lookup.by === "value" || (lookup.by === "facets" && lookup.facets.length === 1)) return lookup.targets;
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
    case "pair":
      return facets.has(pairFacet(target.of, target.path, target.value) ?? "");
  }
};
