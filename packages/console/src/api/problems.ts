import { HeraldError } from "@herald/client";

/** No answer, or a 5xx from a proxy that could not reach the gateway. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof HeraldError &&
  (["unreachable", "timeout"].includes(error.slug) ||
    (error.slug === "unexpected-answer" && (error.status ?? 0) >= 500));

export const unreachable = "Herald is unreachable. Check that the gateway is running. This page retries automatically.";

/** An error in sentences; those of Herald's API are shown unchanged. */
export const sentencesOf = (error: unknown): readonly string[] => {
  if (isUnreachable(error)) return [unreachable];
  if (error instanceof HeraldError) return error.errors;
  return [error instanceof Error ? error.message : String(error)];
};

export const isSignedOut = (error: unknown): boolean => error instanceof HeraldError && error.status === 401;

/** Whether a retry may succeed: no answer, 429 and 5xx. Other errors would only repeat. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof HeraldError) || error.status === undefined || error.status === 429 || error.status >= 500;

const retryMs = 3_000;

/** Milliseconds until a page retries, at least Herald's Retry-After; false if a retry would fail again. */
export const retryAfterMs = (error: unknown): number | false =>
  isPassing(error) && Math.max(retryMs, (error instanceof HeraldError ? (error.retryAfter ?? 0) : 0) * 1_000);

/** The sentences about one field of a form, by its JSON pointer. */
export const problemsOf = (error: unknown, pointer: string): string | undefined => {
  if (!(error instanceof HeraldError)) return undefined;
  // A problem of the whole request, such as a quota, has no pointer.
  const found = error.problems.filter((one) => one.pointer === pointer || one.pointer?.startsWith(`${pointer}/`));
  return found.length > 0 ? found.map(({ detail }) => detail).join("; ") : undefined;
};

/** Resolves to null if the resource does not exist (404) or its id is malformed (422). */
export const orNull = <Value>(asked: Promise<Value>): Promise<Value | null> =>
  asked.catch((error: unknown) => {
    if (error instanceof HeraldError && (error.status === 404 || error.status === 422)) return null;
    throw error;
  });
