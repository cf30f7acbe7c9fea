import type { Condition } from "@herald/contracts";

/** Whether a document can have the path. In others the database would see operators, or refuse them. */
export const possiblePath = (path: string): boolean =>
  path.split(".").every((key) => key !== "" && !key.startsWith("$") && !key.includes("\0"));

const collect = (condition: Condition, into: Set<string>): void => {
  switch (condition.kind) {
    case "or":
    case "and":
      for (const part of condition.parts) collect(part, into);
      break;
    case "not":
      collect(condition.part, into);
      break;
    case "topic":
      into.add("facets");
      break;
    case "seen":
      into.add("lastSeenAt");
      break;
    case "exists":
      if (possiblePath(condition.path)) into.add(`${condition.of}.${condition.path}`);
      break;
    case "compare":
    case "one-of": {
      const { field } = condition;
      if (field.of !== "platform" && possiblePath(field.path)) into.add(`${field.of}.${field.path}`);
    }
  }
};

/** The fields that conditions read. None is inside another one: databases refuse such projections. */
export const neededPaths = (conditions: readonly Condition[]): string[] => {
  const paths = new Set<string>();
  for (const condition of conditions) collect(condition, paths);
  return [...paths].filter((path) => {
    const keys = path.split(".");
    return !keys.some((_, at) => at > 0 && paths.has(keys.slice(0, at).join(".")));
  });
};
