import type { z } from "zod";
import { type DescribeOptions, faultsOf } from "./describe-issues.ts";
import { HeraldError } from "./herald-error.ts";
import { cutLists } from "./schema-at.ts";

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

/**
 * Parses the query of a URL, with or without its `?`. A query that is too long or has too many parameters is refused before parsing,
 * because anyone can send one without a credential.
 * @throws HeraldError `validation-failed`.
 */
export const parseSearch = (text: string): URLSearchParams => {
  if (text.length > maxQueryCharacters)
    throw new HeraldError("validation-failed", `query: may have at most ${maxQueryCharacters} characters`);
  let parameters = 1;
  for (let at = text.indexOf("&"); at >= 0; at = text.indexOf("&", at + 1)) parameters++;
  if (parameters > maxParameters)
    throw new HeraldError("validation-failed", `query: may have at most ${maxParameters} parameters`);
  return new URLSearchParams(text);
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
    ...[...repeated].map((name) => ({ name: name.slice(0, 64), detail: "is given more than once", code: "repeated" })),
    ...(result.success ? [] : faultsOf(result.error, { schema, whole: "query" })),
  ]);
};
