import { cutText } from "@herald/contracts";
import type { z } from "zod";
import { type DescribeOptions, faultsOf } from "./describe-issues.ts";
import { HeraldError } from "./herald-error.ts";
import { bareSchemas } from "./schema-at.ts";

/** Places in a value where the schema allows lists with a maximum length. */
type Place = {
  /** The maximum length of a list at this place. */
  readonly max: number | undefined;
  readonly entries: Place | undefined;
  readonly fields: readonly (readonly [name: string, place: Place])[];
};

const places = new WeakMap<z.core.$ZodType, Place | null>();

/** The maximum from `.max()` of a list's schema. */
const maxLength = (schema: z.core.$ZodType): number | undefined => {
  const { checks = [] } = schema._zod.def as { checks?: readonly { _zod: { def: { maximum?: number } } }[] };
  const [lowest] = checks.flatMap(({ _zod: { def } }) => def.maximum ?? []).toSorted((one, other) => one - other);
  return lowest;
};

/** Undefined if the value cannot contain a list with a maximum length, which is the usual case. */
const placeOf = (schema: z.core.$ZodType, above: ReadonlySet<z.core.$ZodType> = new Set()): Place | undefined => {
  const known = places.get(schema);
  if (known !== undefined) return known ?? undefined;
  const options = bareSchemas(schema);
  // Recursive schemas, and unions, are left to zod.
  const [only] = options;
  if (only === undefined || options.length > 1 || above.has(only)) return undefined;
  const within = new Set([...above, only]);
  const { shape, element } = only._zod.def as { shape?: Record<string, z.core.$ZodType>; element?: z.core.$ZodType };
  const entries = element && placeOf(element, within);
  const fields = Object.entries(shape ?? {}).flatMap(([name, inner]) => {
    const place = placeOf(inner, within);
    return place ? [[name, place] as const] : [];
  });
  const max = element ? maxLength(only) : undefined;
  const place = max === undefined && entries === undefined && fields.length === 0 ? null : { max, entries, fields };
  places.set(schema, place);
  return place ?? undefined;
};

const cut = (place: Place, value: unknown): void => {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    if (place.max !== undefined && value.length > place.max + 1) value.length = place.max + 1;
    if (place.entries) for (const entry of value) cut(place.entries, entry);
    return;
  }
  for (const [name, inner] of place.fields)
    if (Object.hasOwn(value, name)) cut(inner, (value as Record<string, unknown>)[name]);
};

/**
 * Shortens every list that is too long for its schema to one entry above the maximum. Otherwise zod validates all entries, and describes
 * each wrong one, before it counts them: a hundred thousand entries cost seconds. The shortened list is still refused.
 */
export const cutLists = (schema: z.core.$ZodType, value: unknown): void => {
  const place = placeOf(schema);
  if (place) cut(place, value);
};

/** Validates without stack traces, which cost more than the validation. */
const validate = <Schema extends z.ZodType>(schema: Schema, value: unknown): z.ZodSafeParseResult<z.output<Schema>> => {
  const depth = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return schema.safeParse(value);
  } finally {
    Error.stackTraceLimit = depth;
  }
};

/**
 * Parses a body with its schema. `prefix` is the path of the parsed part in the body; describes at most `max` problems.
 * @throws HeraldError `validation-failed` with every problem at once.
 */
export const parseBody = <Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  options: Pick<DescribeOptions, "prefix" | "max"> = {},
): z.output<Schema> => {
  const value = body === undefined ? {} : body;
  cutLists(schema, value);
  const result = validate(schema, value);
  if (result.success) return result.data;
  throw new HeraldError("validation-failed", faultsOf(result.error, { schema, ...options }));
};

/** More parameters than any route has, with room to repeat the route with most of them. */
const maxParameters = 50;
const maxQueryCharacters = 4_096;

/** U+FFFD, percent-encoded. */
const encodedReplacement = /%EF%BF%BD/i;

/**
 * Parses the query of a URL, with or without its `?`. A query that is too long or has too many parameters is refused before parsing,
 * because anyone can send one without a credential. So is one that is not UTF-8: `URLSearchParams` would replace what it cannot read.
 * @throws HeraldError `validation-failed`.
 */
export const parseSearch = (text: string): URLSearchParams => {
  if (text.length > maxQueryCharacters)
    throw new HeraldError("validation-failed", `query: may have at most ${maxQueryCharacters} characters`);
  let parameters = 1;
  for (let at = text.indexOf("&"); at >= 0; at = text.indexOf("&", at + 1)) parameters++;
  if (parameters > maxParameters)
    throw new HeraldError("validation-failed", `query: may have at most ${maxParameters} parameters`);
  const search = new URLSearchParams(text);
  if (text.includes("%") && !encodedReplacement.test(text))
    for (const [name, value] of search)
      if (`${name}${value}`.includes("\ufffd"))
        throw new HeraldError("validation-failed", "query: is not percent-encoded UTF-8");
  return search;
};

/**
 * Parses query parameters with their schema, which gets strings. Repeating a parameter is a separate problem.
 * @throws HeraldError `validation-failed` with every problem at once.
 */
export const parseQuery = <Schema extends z.ZodType>(schema: Schema, search: URLSearchParams): z.output<Schema> => {
  const names = [...search.keys()];
  const repeated = new Set(names.filter((name, at) => names.indexOf(name) < at));
  const result = validate(schema, Object.fromEntries(search));
  if (result.success && repeated.size === 0) return result.data;
  throw new HeraldError("validation-failed", [
    ...[...repeated].map((name) => ({ name: cutText(name, 64), detail: "is given more than once", code: "repeated" })),
    ...(result.success ? [] : faultsOf(result.error, { schema, whole: "query" })),
  ]);
};
