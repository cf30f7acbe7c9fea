import type { z } from "zod";
import { type Fault, messageOf, pointerTo } from "./fault.ts";
import { nearestName } from "./nearest-name.ts";
import { schemasAt } from "./schema-at.ts";

type Issue = z.core.$ZodIssue;

/** More would not help, and a hostile body could ask for a hundred thousand. */
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

/** zod's own sentences begin like this; a schema's own are kept as they are. */
const byZod = /^(?:Invalid |Too big|Too small|Unrecognized )/;

const quoted = (value: unknown): string => `\`${String(value)}\``;
const wanted = (expected: string): string => types[expected] ?? expected;

const bound = (issue: Issue & ({ code: "too_small" } | { code: "too_big" })): string => {
  const small = issue.code === "too_small";
  const limit = small ? issue.minimum : issue.maximum;
  const edge = small
    ? issue.inclusive === false
      ? "more than"
      : "at least"
    : issue.inclusive === false
      ? "less than"
      : "at most";
  switch (issue.origin) {
    case "string":
      return small && limit === 1 ? "may not be empty" : `must have ${edge} ${limit} characters`;
    case "array":
    case "set":
      return small && limit === 1 ? "may not be empty" : `must have ${edge} ${limit} entries`;
    case "object":
    case "map":
      return `must have ${edge} ${limit} keys`;
    default:
      return `must be ${edge} ${limit}`;
  }
};

const sentence = (issue: Issue): string => {
  if (!byZod.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return issue.message.endsWith("received undefined")
        ? `is required and must be ${wanted(issue.expected)}`
        : `must be ${wanted(issue.expected)}`;
    case "too_small":
    case "too_big":
      return bound(issue);
    case "invalid_value":
      return issue.values.length === 1
        ? `must be ${quoted(issue.values[0])}`
        : `must be one of ${issue.values.map(quoted).join(", ")}`;
    case "invalid_format":
      if (issue.format === "regex") return `must match ${issue.pattern}`;
      return `must be ${formats[issue.format] ?? `a valid ${issue.format}`}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_key":
      return `this name is not accepted: ${issue.issues.map(sentence).join(", ")}`;
    default:
      return "is not accepted";
  }
};

const boundCode = (issue: Issue & ({ code: "too_small" } | { code: "too_big" })): string => {
  const small = issue.code === "too_small";
  if (issue.origin === "string") return small ? "too-short" : "too-long";
  if (["array", "set", "object", "map"].includes(issue.origin)) return small ? "too-few" : "too-many";
  return small ? "too-small" : "too-large";
};

/** The stable code of an issue. */
const codeOf = (issue: Issue): string => {
  switch (issue.code) {
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "required" : "invalid-type";
    case "too_small":
    case "too_big":
      return boundCode(issue);
    case "invalid_format":
      return "invalid-format";
    default:
      return "invalid-value";
  }
};

const shortened = (part: PropertyKey): string =>
  String(part).length > maxKeyLength ? `${String(part).slice(0, maxKeyLength)}…` : String(part);

const dotted = (path: readonly PropertyKey[]): string => path.map(shortened).join(".");

type Flat = { path: readonly PropertyKey[]; issue: Issue };

/** Of a union's alternatives, the one that was most likely meant: the value fits its outline, and least is wrong with it. */
const likeliest = (branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined =>
  branches
    .filter((issues) => issues.length > 0 && issues.every((issue) => issue.path.length > 0 || !isOutline(issue)))
    .toSorted((one, other) => weight(one) - weight(other))[0];

const isOutline = (issue: Issue): boolean => issue.code === "invalid_type" || issue.code === "invalid_value";

/** A missing or unknown field speaks more against an alternative than a wrong value in a known one. */
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
  if (!byZod.test(issue.message)) return issue.message;
  const options = [
    ...new Set(
      issue.errors.flatMap((branch) =>
        branch.flatMap((inner) =>
          inner.path.length > 0
            ? []
            : inner.code === "invalid_type"
              ? [wanted(inner.expected)]
              : inner.code === "invalid_value"
                ? inner.values.map(quoted)
                : [],
        ),
      ),
    ),
  ];
  if (options.length > 0) return `must be ${options.join(" or ")}`;
  // A discriminated union's path leads to the field that chooses, so these are the schemas of its values.
  const values = at.flatMap((schema) => [...(schema._zod.values ?? [])].map(quoted));
  return values.length > 0 ? `must be one of ${values.join(", ")}` : "is not accepted";
};

const unknownField = (key: string, known: readonly string[]): string => {
  const near = nearestName(key, known);
  if (near !== undefined) return `unknown field; did you mean ${quoted(near)}?`;
  return known.length === 0 ? "unknown field" : `unknown field; known here: ${known.map(quoted).join(", ")}`;
};

/** The fields that objects of these schemas have. */
export const knownFields = (schemas: readonly z.core.$ZodType[]): string[] => [
  ...new Set(
    schemas.flatMap((schema) => {
      const { shape } = schema._zod.def as { shape?: Record<string, unknown> };
      return shape ? Object.keys(shape) : [];
    }),
  ),
];

export type DescribeOptions = {
  /** The schema that refused: unknown fields are then answered with the nearest known one. */
  readonly schema?: z.core.$ZodType | undefined;
  /** Dotted path of the value in the body, such as `notification`. */
  readonly prefix?: string | undefined;
  /** How many problems are put into words; 100 by default. */
  readonly max?: number | undefined;
  /** How the whole value is called where a problem has no path; `body` by default. */
  readonly whole?: string | undefined;
};

/**
 * zod's issues for the caller: where, what is wrong or what would be accepted, a stable code. Repeats nothing of the refused values. At
 * most 100 unless said otherwise; a last one counts the rest.
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

  /** Each issue as a function: finding the nearest name costs more than finding that a name is wrong. */
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
        yield () =>
          fault(path, codeOf(issue), issue.code === "invalid_union" ? unionSentence(issue, at()) : sentence(issue));
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
