import type { z } from "zod";
import { describeIssues } from "./describe-issues.ts";
import { HeraldError } from "./herald-error.ts";

const parse = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  whole: string,
  prefix?: string,
): z.output<Schema> => {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new HeraldError("validation-failed", describeIssues(result.error, { schema, whole, prefix }));
};

/**
 * The body as its schema says. `prefix` stands before the paths where only a part of the body is parsed.
 * @throws HeraldError `validation-failed` with every problem at once.
 */
export const parseBody = <Schema extends z.ZodType>(schema: Schema, body: unknown, prefix?: string): z.output<Schema> =>
  parse(schema, body === undefined ? {} : body, "body", prefix);

/** Query parameters as plain strings; one that is given twice becomes a list, which no schema of a string accepts. */
export const queryOf = (search: URLSearchParams): Record<string, unknown> => {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of search) {
    const before = query.get(name);
    query.set(name, before === undefined ? value : [before, value].flat());
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
  const result = schema.safeParse(once);
  if (result.success && twice.length === 0) return result.data;
  throw new HeraldError("validation-failed", [
    ...twice.map((name) => `${name.slice(0, 64)}: is given more than once`),
    ...(result.success ? [] : describeIssues(result.error, { schema, whole: "query" })),
  ]);
};

/**
 * The path's parameters as their schema says.
 * @throws HeraldError `validation-failed` with every problem at once.
 */
export const parseParams = <Schema extends z.ZodType>(schema: Schema, request: { params: unknown }): z.output<Schema> =>
  parse(schema, request.params, "path");
