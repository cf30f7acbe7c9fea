import { HeraldError } from "@herald/client";

/** No answer, or a 5xx from a proxy that could not reach the gateway. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof HeraldError &&
  (["unreachable", "timeout"].includes(error.slug) ||
    (error.slug === "unexpected-answer" && (error.status ?? 0) >= 500));

export const unreachable = "Herald is unreachable. Check that the gateway is running. This page retries automatically.";

/** The sentences of the API, each once. */
export const sentencesOf = (error: unknown): readonly string[] =>
  error instanceof HeraldError ? [...new Set(error.errors)] : [error instanceof Error ? error.message : String(error)];

const isAt = (pointer: string | undefined, place: string): boolean =>
  pointer === place || pointer?.startsWith(`${place}/`) === true;

/** `#/project/stale_after` and `#/stale_after` as `Stale after`. */
const labelOf = (pointer: string): string => {
  const [, ...path] = pointer.split("/");
  const words = path
    .slice(path.length > 1 ? 1 : 0)
    .join(" › ")
    .replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** What is wrong with each field, with the field's name, without the fields at `marked`, which show it themselves. */
export const namedSentences = (error: unknown, marked: readonly string[]): readonly string[] => {
  if (!(error instanceof HeraldError) || error.problems.length === 0) return sentencesOf(error);
  const others = error.problems.filter(({ pointer }) => !marked.some((place) => isAt(pointer, place)));
  return [
    ...new Set(
      others.map(({ pointer = "", detail }) => {
        const label = labelOf(pointer);
        return label === "" ? detail : `${label}: ${detail}`;
      }),
    ),
  ];
};

export const isSignedOut = (error: unknown): boolean => error instanceof HeraldError && error.status === 401;

/** Whether a retry may succeed: no answer, 429 and 5xx. Other errors would only repeat. */
export const isTransient = (error: unknown): boolean =>
  !(error instanceof HeraldError) || error.status === undefined || error.status === 429 || error.status >= 500;

const retryMs = 3_000;

/** Milliseconds until a page retries, at least Herald's Retry-After; false if a retry would fail again. */
export const retryAfterMs = (error: unknown): number | false =>
  isTransient(error) && Math.max(retryMs, (error instanceof HeraldError ? (error.retryAfter ?? 0) : 0) * 1_000);

/** The sentences about one field of a form, by its JSON pointer. */
export const problemsOf = (error: unknown, pointer: string): string | undefined => {
  if (!(error instanceof HeraldError)) return undefined;
  // A problem of the whole request, such as a quota, has no pointer.
  const found = error.problems.filter((one) => isAt(one.pointer, pointer));
  return found.length > 0 ? [...new Set(found.map(({ detail }) => detail))].join("; ") : undefined;
};

/**
 * Where the problems of a form are, by the names of its fields. A pointer begins with the name of the resource (`#/kind/title`), or, in
 * requests without one, with the field (`#/bundle_ids/0`).
 */
export const pointersByField = (error: unknown, names: readonly string[]): Readonly<Record<string, string>> => {
  const problems = error instanceof HeraldError ? error.problems : [];
  return Object.fromEntries(
    problems.flatMap(({ pointer = "" }) => {
      const [, ...path] = pointer.split("/");
      const isList = path.length === 1 || /^\d+$/.test(path[1] ?? "");
      const at = path.findIndex((part, place) => (place > 0 || isList) && names.includes(part));
      return at < 0 ? [] : [[path[at], `#/${path.slice(0, at + 1).join("/")}`]];
    }),
  );
};

/** Resolves to null if the resource does not exist (404) or its id is malformed (422). */
export const orNull = <Value>(asked: Promise<Value>): Promise<Value | null> =>
  asked.catch((error: unknown) => {
    if (error instanceof HeraldError && (error.status === 404 || error.status === 422)) return null;
    throw error;
  });
