import { HeraldError } from "@herald/client";
import { texts } from "../texts/common.ts";

/** No answer, or that of a proxy whose gateway does not answer. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof HeraldError &&
  (["unreachable", "timeout"].includes(error.slug) ||
    (error.slug === "unexpected-answer" && (error.status ?? 0) >= 500));

/** What a person reads about an error: the API's own sentences. */
export const sentencesOf = (error: unknown): readonly string[] => {
  if (error instanceof HeraldError) {
    if (isUnreachable(error)) return [texts.errors.unreachable];
    return error.errors;
  }
  return [error instanceof Error ? error.message : String(error)];
};

export const isSignedOut = (error: unknown): boolean => error instanceof HeraldError && error.status === 401;

/** Waits pass by themselves; what was refused stays refused. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof HeraldError) || error.status === undefined || error.status === 429 || error.status >= 500;

const retryMs = 3_000;

/** When a page asks again for what passes by itself, in milliseconds: not before Herald wants it to. */
export const retryAfterMs = (error: unknown): number | false =>
  isPassing(error) && Math.max(retryMs, (error instanceof HeraldError ? (error.retryAfter ?? 0) : 0) * 1_000);

/** The sentences about one field of a form, by its JSON pointer. */
export const problemsOf = (error: unknown, pointer: string): string | undefined => {
  if (!(error instanceof HeraldError)) return undefined;
  // A problem of the whole request, such as a quota, has no pointer.
  const found = error.problems.filter((one) => one.pointer === pointer || one.pointer?.startsWith(`${pointer}/`));
  return found.length > 0 ? found.map(({ detail }) => detail).join("; ") : undefined;
};
