import { type AppData, type DeviceId, fulfils, type Literal, type Platform, type Target } from "@herald/contracts";
import { pairFacet, scalarText, topicFacet, userFacet } from "./facets.ts";

/** What a target is compared with. The data is needed only for conditions, and for values that are too long to be facets. */
export type Candidate = {
  readonly id: DeviceId;
  readonly platform: Platform;
  readonly token: string;
  readonly facets: ReadonlySet<string>;
  readonly metadata?: AppData;
  readonly identifiers?: AppData;
};

/** The value at a path of keys joined by `.`; arrays are not entered. */
const valueAt = (data: unknown, path: string): unknown => {
  let at = data;
  // Not split: a stranger's path may have a thousand keys, and most devices have not even the first.
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

const literal = (value: unknown): Literal | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined;

/** Whether a target names the device. Says nothing about the device being active. */
export const matches = (target: Target, device: Candidate): boolean => {
  switch (target.kind) {
    case "all":
      return true;
    case "device":
      return device.id === target.id;
    case "token":
      return device.token === target.token;
    case "topic":
      return device.facets.has(topicFacet(target.name));
    case "user":
      return device.facets.has(userFacet(target.id));
    case "pair": {
      const facet = pairFacet(target.of, target.path, target.value);
      if (facet !== undefined) return device.facets.has(facet);
      return scalarText(valueAt(device[target.of], target.path)) === target.value;
    }
    case "condition":
      return fulfils(target.condition, {
        platform: device.platform,
        inTopic: (name) => device.facets.has(topicFacet(name)),
        value: (of, path) => literal(valueAt(device[of], path)),
      });
  }
};
