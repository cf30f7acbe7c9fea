import { isObject } from "@herald/contracts";

/** JSON Merge Patch (RFC 7396): `null` removes a key, objects merge, other values replace. Does not modify its arguments. */
export const mergePatch = (target: unknown, patch: Record<string, unknown>): Record<string, unknown> => {
  const merged = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, isObject(value) ? mergePatch(merged.get(key), value) : value);
  }
  return Object.fromEntries(merged);
};
