import { cutText } from "@herald/contracts";
import type { z } from "zod";
import { type Fault, messageOf, pointerTo } from "./herald-error.ts";
import { nearestName } from "./nearest-name.ts";
import { schemasAt } from "./schema-at.ts";

type Issue = z.core.$ZodIssue;

/** More would not help the caller, and a hostile body could cause a hundred thousand. */
const maxMessages = 100;
const maxKeyLength = 64;

const types: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
  date: "a time",
  null: "null",
  bigint: "a whole number",
};

const formats: Record<string, string> = {
  url: "a URL",
  email: "an e-mail address",
  uuid: "a UUID",
  datetime: "an RFC 3339 time, such as 2030-01-31T09:00:00Z",
  date: "a date, such as 2030-01-31",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  base64: "base64",
  base64url: "base64url",
  json_string: "JSON",
};

/** Zod's own messages begin like this; messages written in a schema stay unchanged. */
const byZod = /^(?:Invalid |Too big|Too small|Unrecognized )/;

const quoted = (value: unknown): string => `\`${String(value)}\``;
const wanted = (expected: string): string => types[expected] ?? expected;

type Bound = Issue & ({ code: "too_small" } | { code: "too_big" });

/** What a value has a number of, and the ends of the codes for too few and too many of it. */
const sizes: Partial<Record<Bound["origin"], readonly [unit: string, few: string, many: string]>> = {
  string: ["characters", "short", "long"],
  array: ["entries", "few", "many"],
  set: ["entries", "few", "many"],
  object: ["keys", "few", "many"],
  map: ["keys", "few", "many"],
};

const boundProblem = (issue: Bound): Problem => {
  const small = issue.code === "too_small";
  const limit = small ? issue.minimum : issue.maximum;
  const [edge, strict] = small ? ["at least", "more than"] : ["at most", "less than"];
  const range = `${issue.inclusive === false ? strict : edge} ${limit}`;
  const [unit, few, many] = sizes[issue.origin] ?? ["", "small", "large"];
  const code = `too-${small ? few : many}`;
  if (unit === "") return { code, detail: `must be ${range}` };
  if (small && limit === 1 && unit !== "keys") return { code, detail: "may not be empty" };
  return { code, detail: `must have ${range} ${unit}` };
};

type Problem = { readonly code: string; readonly detail: string };

/** The stable code of an issue, and zod's own message in better words. */
const problemOf = (issue: Issue): Problem => {
  switch (issue.code) {
    case "invalid_type": {
      const detail = `must be ${wanted(issue.expected)}`;
      return issue.message.endsWith("received undefined")
        ? { code: "required", detail: `is required and ${detail}` }
        : { code: "invalid-type", detail };
    }
    case "too_small":
    case "too_big":
      return boundProblem(issue);
    case "invalid_value": {
      const values = issue.values.map(quoted);
      const detail = values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(", ")}`;
      return { code: "invalid-value", detail };
    }
    case "invalid_format": {
      const detail =
        issue.format === "regex"
          ? `must match ${issue.pattern}`
          : `must be ${formats[issue.format] ?? `a valid ${issue.format}`}`;
      return { code: "invalid-format", detail };
    }
    case "not_multiple_of":
      return { code: "invalid-value", detail: `must be a multiple of ${issue.divisor}` };
    case "invalid_key": {
      const why = issue.issues.map((inner) => ownOr(inner, problemOf(inner).detail)).join(", ");
      return { code: "invalid-value", detail: `this name is not accepted: ${why}` };
    }
    default:
      return { code: "invalid-value", detail: "is not accepted" };
  }
};

/** The message of the schema, if it has one of its own. */
const ownOr = (issue: Issue, detail: string): string => (byZod.test(issue.message) ? detail : issue.message);

const shortened = (part: PropertyKey): string =>
  String(part).length > maxKeyLength ? `${cutText(String(part), maxKeyLength)}…` : String(part);

const dotted = (path: readonly PropertyKey[]): string => path.map(shortened).join(".");

type Flat = { path: readonly PropertyKey[]; issue: Issue };

/** The alternative of a union that the caller most likely meant: the value has its type, and the fewest problems. */
const likeliest = (branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined =>
  branches
    .filter((issues) => issues.length > 0 && issues.every((issue) => issue.path.length > 0 || !isOutline(issue)))
    .toSorted((one, other) => weight(one) - weight(other))[0];

const isOutline = (issue: Issue): boolean => issue.code === "invalid_type" || issue.code === "invalid_value";

/** A missing or unknown field is stronger evidence against an alternative than a wrong value in a known field. */
const weight = (issues: readonly Issue[]): number =>
  issues.reduce(
    (sum, issue) => sum + (issue.code === "unrecognized_keys" ? 3 * issue.keys.length : isOutline(issue) ? 2 : 1),
    0,
  );

function* flatten(issues: readonly Issue[], above: readonly PropertyKey[]): Generator<Flat> {
  for (const issue of issues) {
    const path = [...above, ...issue.path];
    const best = issue.code === "invalid_union" && "errors" in issue ? likeliest(issue.errors) : undefined;
    if (best) yield* flatten(best, path);
    else yield { path, issue };
  }
}

const unionSentence = (issue: Issue & { code: "invalid_union" }, at: readonly z.core.$ZodType[]): string => {
  const options = issue.errors.flat().flatMap((inner) => {
    if (inner.path.length > 0) return [];
    if (inner.code === "invalid_type") return [wanted(inner.expected)];
    return inner.code === "invalid_value" ? inner.values.map(quoted) : [];
  });
  if (options.length > 0) return `must be ${[...new Set(options)].join(" or ")}`;
  // The path leads to the discriminator field of the union, so these schemas contain its values.
  const values = at.flatMap((schema) => [...(schema._zod.values ?? [])].map(quoted));
  return values.length > 0 ? `must be one of ${values.join(", ")}` : "is not accepted";
};

const unknownField = (key: string, known: readonly string[]): string => {
  const near = nearestName(key, known);
  if (near !== undefined) return `unknown field; did you mean ${quoted(near)}?`;
  return known.length === 0 ? "unknown field" : `unknown field; known here: ${known.map(quoted).join(", ")}`;
};

/** The fields of objects with these schemas. */
export const knownFields = (schemas: readonly z.core.$ZodType[]): string[] => [
  ...new Set(
    schemas.flatMap((schema) => {
      const { shape } = schema._zod.def as { shape?: Record<string, unknown> };
      return shape ? Object.keys(shape) : [];
    }),
  ),
];

export type DescribeOptions = {
  /** The schema that refused the value: with it, the message for an unknown field suggests the nearest known one. */
  readonly schema?: z.core.$ZodType | undefined;
  /** Dotted path of the value in the body, such as `notification`. */
  readonly prefix?: string | undefined;
  /** The maximum number of described problems; 100 by default. */
  readonly max?: number | undefined;
  /** The name of the whole value for a problem without a path; `body` by default. */
  readonly whole?: string | undefined;
};

/**
 * Zod's issues for the caller: the place, the problem or the accepted values, and a stable code. Never repeats refused values. Returns at
 * most 100 by default; a last fault counts the rest.
 */
export const faultsOf = (error: { issues: readonly Issue[] }, options: DescribeOptions = {}): Fault[] => {
  const { schema, prefix = "", whole = "body", max = maxMessages } = options;
  const above = prefix === "" ? [] : prefix.split(".");
  const fault = (path: readonly PropertyKey[], code: string, detail: string): Fault => ({
    name: [prefix, dotted(path)].filter((part) => part !== "").join(".") || whole,
    detail,
    code,
    ...(whole === "body" && { pointer: pointerTo([...above, ...path.map(shortened)]) }),
  });

  /** Yields each issue as a function, because the search for the nearest name costs more than finding the issue. */
  function* describers(): Generator<() => Fault> {
    for (const { path, issue } of flatten(error.issues, [])) {
      const at = () => (schema ? schemasAt([schema], path) : []);
      if (issue.code === "unrecognized_keys") {
        let known: string[] | undefined;
        for (const key of issue.keys)
          yield () => {
            known ??= knownFields(at());
            return fault([...path, key], "unknown-field", unknownField(key, known));
          };
      } else
        yield () => {
          const { code, detail } = problemOf(issue);
          return fault(path, code, ownOr(issue, issue.code === "invalid_union" ? unionSentence(issue, at()) : detail));
        };
    }
  }

  const faults = new Map<string, Fault>();
  let described = 0;
  let more = 0;
  for (const describe of describers()) {
    if (described === max) {
      more++;
      continue;
    }
    described++;
    const one = describe();
    faults.set(messageOf(one), one);
  }
  const rest = { name: "", detail: `${more} more problems like these`, code: "more-problems" };
  return [...faults.values(), ...(more === 0 ? [] : [rest])];
};

/** {@link faultsOf} as sentences. */
export const describeIssues = (error: { issues: readonly Issue[] }, options?: DescribeOptions): string[] =>
  faultsOf(error, options).map(messageOf);
