import { z } from "zod";
import { withProblems } from "./named.ts";
import { isObject } from "./plain-batch.ts";

/** The limits of the values that a text with Liquid shows. */
export const variableLimits = { count: 50, bytes: 4_096 } as const;

/** Words that Liquid reads otherwise, names of what Herald knows itself, and a name that every object of JavaScript has. */
const reserved: ReadonlySet<string> = new Set([
  ...["true", "false", "nil", "null", "empty", "blank", "and", "or", "not", "contains"],
  ...["user", "device", "constructor"],
]);

export const variableNameRule =
  "must be 1 to 32 of `a-z`, `0-9` and `_`, beginning with a letter, and no word of Liquid, nor `user` or `device`";

/** Whether a value may have this name. */
export const isVariableName = (name: string): boolean => /^[a-z][a-z0-9_]{0,31}$/.test(name) && !reserved.has(name);

export const VariableName = z.string().refine(isVariableName, variableNameRule);

export const VariableValue = z.union([z.string(), z.number(), z.boolean()], {
  error: "must be a text, a number, true or false",
});
export type VariableValue = z.infer<typeof VariableValue>;

const tooMany = `at most ${variableLimits.count} variables are accepted`;

/** A refinement for objects by variable: zod would describe each of a hundred thousand entries before it counts them. */
const fewKeys = (value: unknown, context: z.core.$RefinementCtx): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  // zod drops this name.
  if (Object.hasOwn(value, "__proto__"))
    context.addIssue({ code: "custom", path: ["__proto__"], message: variableNameRule, input: value });
  if (Object.keys(value).length <= variableLimits.count) return value;
  context.addIssue({ code: "custom", message: tooMany, input: value });
  return z.NEVER;
};

/** The values of a send, by name. */
export const Variables = z
  .preprocess(
    fewKeys,
    z
      .record(VariableName, VariableValue)
      .refine(
        (values) => Buffer.byteLength(JSON.stringify(values)) <= variableLimits.bytes,
        `must be at most ${variableLimits.bytes} bytes of JSON`,
      ),
  )
  .meta({ id: "Variables", maxProperties: variableLimits.count, examples: [{ order: "42" }] });
export type Variables = z.infer<typeof Variables>;

/** The most bytes that a character, and a number or another value, take in JSON. */
const [characterBytes, otherBytes] = [6, 32];

/** A fast check of few short values: {@link Variables} accepts them unchanged. It runs for each line of an upload. */
export const isPlainVariables = (value: unknown): value is Variables => {
  if (!isObject(value)) return false;
  let count = 0;
  let bytes = 2;
  for (const name in value) {
    const own = value[name];
    const isText = typeof own === "string";
    if (!isText && typeof own !== "boolean" && !Number.isFinite(own)) return false;
    if (++count > variableLimits.count || !isVariableName(name)) return false;
    bytes += name.length + (isText ? own.length * characterBytes : otherBytes) + otherBytes;
  }
  return bytes <= variableLimits.bytes;
};

export const VariableType = z.enum(["string", "number", "boolean", "datetime"]);
type VariableType = z.infer<typeof VariableType>;

const Time = z.iso.datetime({ offset: true });
const isTime = (value: unknown): boolean => Time.safeParse(value).success;

const wanted: Readonly<Record<VariableType, readonly [is: (value: unknown) => boolean, words: string]>> = {
  string: [(value) => typeof value === "string", "a text"],
  number: [Number.isFinite, "a number"],
  boolean: [(value) => typeof value === "boolean", "true or false"],
  datetime: [isTime, "an RFC 3339 time with offset, such as 2030-01-31T09:00:00Z"],
};

/** What is wrong with the value of a variable; undefined: nothing. */
export const variableProblem = (type: VariableType, value: unknown): string | undefined => {
  const [is, words] = wanted[type];
  return is(value) ? undefined : `must be ${words}`;
};

/** What a template says of one of its variables. */
export const DeclaredVariable = z
  .strictObject({
    type: VariableType,
    fallback: VariableValue.optional().meta({
      description: "The value where a send gives none; absent: a send must give one",
      examples: ["friend"],
    }),
  })
  .superRefine(
    withProblems(({ type, fallback }) => {
      const message = fallback === undefined ? undefined : variableProblem(type, fallback);
      return message === undefined ? [] : [{ path: ["fallback"], message }];
    }),
  )
  .meta({ id: "DeclaredVariable", examples: [{ type: "string", fallback: "friend" }] });

export const DeclaredVariables = z.preprocess(fewKeys, z.record(VariableName, DeclaredVariable)).meta({
  id: "DeclaredVariables",
  maxProperties: variableLimits.count,
  description: "The values that its texts show, by name. A text cannot show others, and a send cannot give others",
  examples: [{ order: { type: "string" }, name: { type: "string", fallback: "friend" } }],
});
export type DeclaredVariables = z.infer<typeof DeclaredVariables>;
