import type { AppData } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { readIdentifiers } from "@herald/rules";

/** The identifiers that an app sends. A bad time zone or locale is left out and listed: versions of the app that people have cannot be changed. */
export const identifiersOfApp = (
  sent: AppData | undefined,
): { readonly identifiers?: AppData; readonly ignored: string[] } => {
  if (sent === undefined) return { ignored: [] };
  const { identifiers, problems } = readIdentifiers(sent);
  return { identifiers, ignored: problems.map(({ field }) => field) };
};

/**
 * The identifiers of a device that a project token sends.
 * @throws HeraldError `validation-failed` for a bad time zone or locale.
 */
export const identifiersOfBackend = (sent: AppData | undefined): AppData | undefined => {
  if (sent === undefined) return undefined;
  const { identifiers, problems } = readIdentifiers(sent);
  if (problems.length === 0) return identifiers;
  throw new HeraldError(
    "validation-failed",
    problems.map(({ field, message }) => `device.${field}: ${message}`),
  );
};

/** What stands beside a response's data if paths of the request were left out. */
export const leftOut = (paths: readonly string[]): { readonly ignored?: string[] } =>
  paths.length > 0 ? { ignored: [...paths] } : {};
