import { UsageError } from "./failures.ts";

/** Parses `name=value`; the value may contain `=`. */
export const parsePairs = (pairs: readonly string[], flag = "--data"): Record<string, string> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`${flag} ${pair}: must be name=value.`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );

/** `name=value` as filters of the API write it: `name:value`. */
export const labelFilter = (pair: string): string =>
  Object.entries(parsePairs([pair], "--label"))
    .map((label) => label.join(":"))
    .join();
