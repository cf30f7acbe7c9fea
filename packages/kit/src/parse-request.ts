import type { z } from "zod";
import { cutLists } from "./cut-lists.ts";
import { type DescribeOptions, faultsOf } from "./describe-issues.ts";
import { HeraldError } from "./herald-error.ts";

/** Without stack traces, which cost more than the validation. */
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
 * The body as its schema says. `prefix` is the path of the parsed part in the body; at most `most` of its problems are described.
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

/** More than any route knows, and room for repeating the longest of them. */
const maxParameters = 50;
const maxQueryCharacters = 4_096;

/**
 * The query behind a path, with or without its `?`. What is too long or has too many parameters is refused before it is parsed: no
 * credential is needed to send one.
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

/** Query parameters as plain strings; one that is given twice becomes a list, which no schema of a string accepts. */
export const queryOf = (search: URLSearchParams): Record<string, unknown> => {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of search) {
    const before = query.get(name);
    if (before === undefined) query.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else query.set(name, [before, value]);
  }
  return Object.fromEntries(query);
};

/**
 * The query parameters as their schema says; it sees strings. A parameter that is given twice is a problem of its own.
 * @throws HeraldError `validation-failed` with every problem at once.
 */
export const parseQuery = <Schema extends z.ZodType>(schema: Schema, request: { query: unknown }): z.output<Schema> => {
  const query = request.query as Record<string, unknown>;
  const twice = Object.keys(query).filter((name) => Array.isArray(query[name]));
  const once = Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
  const result = validate(schema, once);
  if (result.success && twice.length === 0) return result.data;
  throw new HeraldError("validation-failed", [
    ...twice.map((name) => ({ name: name.slice(0, 64), detail: "is given more than once", code: "repeated" })),
    ...(result.success ? [] : faultsOf(result.error, { schema, whole: "query" })),
  ]);
};
