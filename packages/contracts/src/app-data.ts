import { z } from "zod";
import { type PathProblem, withProblems } from "./named.ts";

/** The limits of `metadata` and `identifiers`; the outermost object is depth 1. */
export const appDataLimits = { bytes: 16_384, depth: 5, keysPerLevel: 64 } as const;

/** More problems than a person fixes at once; a hostile value has thousands. */
const maxProblems = 100;

/** Up to 100 problems of a `metadata` object, each with its path. An object that is too large is refused without a walk through it. */
export const appDataProblems = (value: Record<string, unknown>): PathProblem[] => {
  if (Buffer.byteLength(JSON.stringify(value)) > appDataLimits.bytes)
    return [{ path: [], message: `must be at most ${appDataLimits.bytes} bytes of JSON` }];
  const problems: PathProblem[] = [];
  const visit = (node: unknown, path: PathProblem["path"], depth: number): void => {
    if (typeof node !== "object" || node === null || problems.length >= maxProblems) return;
    if (depth > appDataLimits.depth) {
      problems.push({ path, message: `may be nested at most ${appDataLimits.depth} deep` });
      return;
    }
    if (Array.isArray(node)) {
      for (const [index, item] of node.entries()) visit(item, [...path, index], depth + 1);
      return;
    }
    const keys = Object.keys(node);
    if (keys.length > appDataLimits.keysPerLevel) {
      problems.push({ path, message: `may have at most ${appDataLimits.keysPerLevel} keys` });
      return;
    }
    for (const key of keys) {
      if (key === "") problems.push({ path, message: "keys may not be empty" });
      else if (key.startsWith("$")) problems.push({ path: [...path, key], message: "keys may not start with `$`" });
      else if (key.includes(".") || key.includes("\0"))
        problems.push({ path: [...path, key], message: "keys may not contain `.` or NUL" });
      visit((node as Record<string, unknown>)[key], [...path, key], depth + 1);
    }
  };
  visit(value, [], 1);
  return problems.slice(0, maxProblems);
};

/** A JSON object of the app: flat or nested, within {@link appDataLimits}. In a patch, `null` removes a key. */
export const AppData = z
  .record(z.string(), z.unknown(), { error: "must be a JSON object" })
  .superRefine(withProblems(appDataProblems))
  .meta({
    id: "AppData",
    description: "A JSON object: at most 16 KiB, 5 levels deep, 64 keys a level",
    examples: [{ plan: "pro" }],
  });
export type AppData = z.infer<typeof AppData>;
