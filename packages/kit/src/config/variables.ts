import { z } from "zod";
import { durationToMs, sizeToBytes } from "./units.ts";

/** What a variable's problem report says beside what is wrong. */
export type VariableInfo = {
  /** What would be accepted, in words. */
  readonly accepts: string;
  readonly example: string;
  /** Its value is never repeated, not even when it is wrong. */
  readonly secret: boolean;
};

const known = z.registry<VariableInfo>();

/** Gives a schema of a variable the words for its problem report. */
export const variable = <Schema extends z.ZodType>(
  schema: Schema,
  info: { accepts: string; example: string; secret?: boolean },
): Schema => {
  known.add(schema, { secret: false, ...info });
  return schema;
};

/** The words given to a variable, also under `.optional()`, `.default()`, `.transform()` and the like. */
export const variableInfo = (schema: z.core.$ZodType): VariableInfo | undefined => {
  const info = known.get(schema as z.ZodType);
  if (info) return info;
  const { innerType, in: input } = schema._zod.def as { innerType?: z.core.$ZodType; in?: z.core.$ZodType };
  const inner = innerType ?? input;
  return inner && variableInfo(inner);
};

const parsed = <Value>(parse: (text: string) => Value | undefined, problem: string) =>
  z.string().transform((text, context): Value => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  });

const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
};

/** A port; 0 lets the system choose a free one. */
const port = () =>
  variable(parsed(wholeNumber(0, 65_535), "is not a port"), {
    accepts: "a whole number from 0 to 65535, 0 for any free port",
    example: "8080",
  });

const integer = ({ min, max }: { min: number; max: number }) =>
  variable(parsed(wholeNumber(min, max), `is not a whole number from ${min} to ${max}`), {
    accepts: `a whole number from ${min} to ${max}`,
    example: String(min),
  });

/** A URL of one of the schemes (without `:`). It may hold a password, so it is never repeated. */
const url = (...schemes: [string, ...string[]]) => {
  const one = schemes.map((scheme) => `${scheme}://…`).join(" or ");
  return variable(
    parsed(
      (text) => (URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1)) ? text : undefined),
      `is not a URL that begins with ${one}`,
    ),
    { accepts: `a URL such as ${one}`, example: `${schemes[0]}://127.0.0.1:1234`, secret: true },
  );
};

/** Several URLs with commas between them, as NATS and MongoDB clusters are named. */
const urls = (...schemes: [string, ...string[]]) => {
  const fits = (text: string) => URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1));
  return variable(
    parsed(
      (text) => {
        const each = text.split(",").map((part) => part.trim());
        return each.every(fits) ? each : undefined;
      },
      `is not a list of URLs that begin with ${schemes.join(":// or ")}://`,
    ),
    {
      accepts: "one URL, or several with commas between them",
      example: `${schemes[0]}://127.0.0.1:4222`,
      secret: true,
    },
  );
};

/** A MongoDB connection string: hosts with commas between them are no URL to Node. Never repeated. */
const mongoUrl = () =>
  variable(z.string().regex(/^mongodb(?:\+srv)?:\/\/[^\s/]+(?:\/\S*)?$/, "is not a MongoDB connection string"), {
    accepts: "mongodb://… or mongodb+srv://…",
    example: "mongodb://127.0.0.1:27017",
    secret: true,
  });

/** `changeme` typed three times, or one letter over and over; a random secret of that length has more, whatever its alphabet. */
const isVaried = (min: number) => (text: string) => new Set(text).size >= Math.min(8, min / 2);

/** A secret with a minimum length. It has no default: a public secret protects nothing. */
const secret = ({ min = 16 }: { min?: number } = {}) =>
  variable(
    z
      .string()
      .min(min, { error: `is shorter than ${min} characters`, abort: true })
      .refine(isVaried(min), "is easy to guess"),
    {
      accepts: min > 1 ? `at least ${min} random characters` : "any text",
      example: "the output of `openssl rand -base64 32`",
      secret: true,
    },
  );

/** 32 random bytes in base64 or hex, as a Buffer. */
const key32 = () =>
  variable(
    parsed((text) => {
      const bytes = /^[0-9a-fA-F]{64}$/.test(text)
        ? Buffer.from(text, "hex")
        : /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
          ? Buffer.from(text, "base64")
          : undefined;
      return bytes?.length === 32 ? bytes : undefined;
    }, "is not a key of 32 bytes"),
    {
      accepts: "32 random bytes as 44 characters of base64 or 64 of hex",
      example: "the output of `openssl rand -base64 32`",
      secret: true,
    },
  );

/** Keys that are rotated by putting a new one in front, which then does what `first` says. `parse` says in words what is wrong. */
const keyRing = <Keys>(parse: (text: string) => { keys: Keys } | { problem: string }, first: string) =>
  variable(
    z.string().transform((text, context): Keys => {
      const ring = parse(text);
      if ("keys" in ring) return ring.keys;
      context.addIssue({ code: "custom", message: ring.problem });
      return z.NEVER;
    }),
    {
      accepts: `<id>:<base64 of 32 random bytes>, several joined by commas, the ${first} one first`,
      example: "k1:<the output of `openssl rand -base64 32`>",
      secret: true,
    },
  );

/** Milliseconds from `250ms`, `10s`, `5m`, `2h`, `30d`, or a bare number of milliseconds. */
const durationMs = ({ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {}) =>
  variable(
    parsed((text) => {
      const value = durationToMs(text);
      return value !== undefined && value >= min && value <= max ? value : undefined;
    }, "is not a duration in the range"),
    {
      accepts: `a duration${min > 0 ? ` of at least ${min} ms` : ""}${max < Number.MAX_SAFE_INTEGER ? ` and at most ${max} ms` : ""}: a number with ms, s, m, h or d`,
      example: "30s",
    },
  );

/** Bytes from `64KiB`, `5MiB`, `1GiB`, `2MB`, or a bare number. */
const bytes = ({ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {}) =>
  variable(
    parsed((text) => {
      const value = sizeToBytes(text);
      return value !== undefined && value >= min && value <= max ? value : undefined;
    }, "is not a size in the range"),
    {
      accepts: `a size${min > 0 ? ` of at least ${min} bytes` : ""}${max < Number.MAX_SAFE_INTEGER ? ` and at most ${max} bytes` : ""}: a number with B, KiB, MiB, GiB, kB, MB or GB`,
      example: "1MiB",
    },
  );

const flag = () =>
  variable(
    parsed((text) => {
      if (["true", "1", "yes", "on"].includes(text.toLowerCase())) return true;
      if (["false", "0", "no", "off"].includes(text.toLowerCase())) return false;
      return undefined;
    }, "is neither true nor false"),
    { accepts: "true or false", example: "true" },
  );

/** Entries with commas between them, trimmed; empty ones are left out. */
const list = () =>
  variable(
    z.string().transform((text) =>
      text
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ""),
    ),
    { accepts: "entries with commas between them", example: "one,two" },
  );

const text = () => variable(z.string(), { accepts: "text", example: "text" });

const choice = <const Value extends string>(...values: [Value, ...Value[]]) =>
  variable(z.enum(values, { error: `is not one of ${values.join(", ")}` }), {
    accepts: `one of ${values.join(", ")}`,
    example: values[0],
  });

/** A host name or address to listen on. */
const host = () =>
  variable(z.string().regex(/^[A-Za-z0-9._:[\]-]+$/, "is not a host name or an address"), {
    accepts: "a host name or an address, 0.0.0.0 for all",
    example: "127.0.0.1",
  });

/** Building blocks of a service's configuration. Each schema reads the text of one environment variable. */
export const variables = {
  port,
  integer,
  url,
  urls,
  mongoUrl,
  secret,
  key32,
  keyRing,
  durationMs,
  bytes,
  flag,
  list,
  text,
  choice,
  host,
};
