/** Building blocks of a service's configuration. Each schema reads the text of one environment variable. */
import { z } from "zod";

/** The words of a variable's problem report, beside the problem itself. */
export type VariableInfo = {
  /** The accepted values, in words. */
  readonly accepts: string;
  readonly example: string;
  /** The value never appears in a report, even if it is wrong. */
  readonly secret: boolean;
};

const known = z.registry<VariableInfo>();

/** Registers the words for the problem report of a variable's schema. */
const variable = <Schema extends z.ZodType>(
  schema: Schema,
  info: { accepts: string; example: string; secret?: boolean },
): Schema => {
  known.add(schema, { secret: false, ...info });
  return schema;
};

/** The words registered for a variable, also under `.optional()`, `.default()`, `.transform()` and the like. */
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
export const port = () =>
  variable(parsed(wholeNumber(0, 65_535), "is not a port"), {
    accepts: "a whole number from 0 to 65535, 0 for any free port",
    example: "8080",
  });

export const integer = ({ min, max }: { min: number; max: number }) =>
  variable(parsed(wholeNumber(min, max), `is not a whole number from ${min} to ${max}`), {
    accepts: `a whole number from ${min} to ${max}`,
    example: String(min),
  });

const hasScheme = (schemes: readonly string[]) => (text: string) =>
  schemes.includes(URL.parse(text)?.protocol.slice(0, -1) ?? "");

/** A URL with one of the schemes (without `:`). It may contain a password, so reports never show it. */
export const url = (...schemes: [string, ...string[]]) => {
  const one = schemes.map((scheme) => `${scheme}://…`).join(" or ");
  return variable(z.string().refine(hasScheme(schemes), `is not a URL that begins with ${one}`), {
    accepts: `a URL such as ${one}`,
    example: `${schemes[0]}://127.0.0.1:1234`,
    secret: true,
  });
};

const proxyUrlOf = (text: string): string | undefined => {
  // Without a scheme, as curl and Go accept it.
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.hostname === "") return undefined;
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    return undefined;
  }
  return url.href;
};

/** The URL of a proxy. It may contain a password, so reports never show it. */
export const proxyUrl = () =>
  variable(parsed(proxyUrlOf, "is not the URL of a proxy"), {
    accepts: "a URL such as http://… or https://…, with `user:password@` before the host if needed",
    example: "http://proxy.example.com:3128",
    secret: true,
  });

/** Several URLs separated by commas, as for clusters of NATS. */
export const urls = (...schemes: [string, ...string[]]) =>
  variable(
    z
      .string()
      .transform((text) => text.split(",").map((part) => part.trim()))
      .refine(
        (each) => each.every(hasScheme(schemes)),
        `is not a list of URLs that begin with ${schemes.join(":// or ")}://`,
      ),
    {
      accepts: "one URL, or several with commas between them",
      example: `${schemes[0]}://127.0.0.1:4222`,
      secret: true,
    },
  );

/** A MongoDB connection string: Node cannot parse hosts separated by commas as a URL. Reports never show it. */
export const mongoUrl = () =>
  variable(z.string().regex(/^mongodb(?:\+srv)?:\/\/[^\s/]+(?:\/\S*)?$/, "is not a MongoDB connection string"), {
    accepts: "mongodb://… or mongodb+srv://…",
    example: "mongodb://127.0.0.1:27017",
    secret: true,
  });

/** Refuses `changeme` typed three times, or one letter repeated: a random secret of that length has more different characters. */
const isVaried = (min: number) => (text: string) => new Set(text).size >= Math.min(8, min / 2);

/** A secret with a minimum length. It has no default: a public secret protects nothing. */
export const secret = ({ min = 16 }: { min?: number } = {}) =>
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

/** Keys for rotation: a new key goes first, and the first key has the task that `first` names. `parse` returns problems in words. */
export const keyRing = <Keys>(parse: (text: string) => { keys: Keys } | { problem: string }, first: string) =>
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

type Units = Readonly<Record<string, number>>;

const parseQuantity = (text: string, units: Units): number => {
  const match = /^([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([A-Za-z]*)$/.exec(text.trim());
  return Math.round(Number(match?.[1]) * (units[(match?.[2] ?? "").toLowerCase()] ?? Number.NaN));
};

/** A number with a unit, or without one. `inWords`: the units that reports use, largest first. */
const quantity =
  (what: string, units: Units, inWords: readonly string[], words: { units: string; example: string }) =>
  ({ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {}) => {
    /** The value in its largest unit that gives a whole number. */
    const shown = (value: number): string => {
      const name = inWords.find((one) => value % (units[one.toLowerCase()] ?? 1) === 0) ?? "";
      return `${value / (units[name.toLowerCase()] ?? 1)}${name}`;
    };
    const usual = parseQuantity(words.example, units);
    const example = usual >= min && usual <= max ? words.example : shown(usual < min ? min : max);
    const range = [
      ...(min > 0 ? [` of at least ${shown(min)}`] : []),
      ...(max < Number.MAX_SAFE_INTEGER ? [`${min > 0 ? " and" : " of"} at most ${shown(max)}`] : []),
    ].join("");
    return variable(
      parsed((text) => {
        const value = parseQuantity(text, units);
        return value >= min && value <= max ? value : undefined;
      }, `is not a ${what} in the range`),
      { accepts: `a ${what}${range}: a number with ${words.units}`, example },
    );
  };

/** Milliseconds from `250ms`, `10s`, `5m`, `2h`, `30d`, or a bare number of milliseconds. */
export const durationMs = quantity(
  "duration",
  { "": 1, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  ["d", "h", "m", "s", "ms"],
  { units: "ms, s, m, h or d", example: "30s" },
);

/** Bytes from `64KiB`, `5MiB`, `1GiB`, `2MB`, or a bare number. */
export const byteSize = quantity(
  "size",
  { "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 },
  ["GiB", "MiB", "KiB", "B"],
  { units: "B, KiB, MiB, GiB, kB, MB or GB", example: "1MiB" },
);

export const flag = () =>
  variable(
    z.stringbool({
      truthy: ["true", "1", "yes", "on"],
      falsy: ["false", "0", "no", "off"],
      error: "is neither true nor false",
    }),
    { accepts: "true or false", example: "true" },
  );

export const text = () => variable(z.string(), { accepts: "text", example: "text" });

export const choice = <const Value extends string>(...values: [Value, ...Value[]]) =>
  variable(z.enum(values, { error: `is not one of ${values.join(", ")}` }), {
    accepts: `one of ${values.join(", ")}`,
    example: values[0],
  });

/** A host name or address to listen on. */
export const host = () =>
  variable(z.string().regex(/^[A-Za-z0-9._:[\]-]+$/, "is not a host name or an address"), {
    accepts: "a host name or an address, 0.0.0.0 for all",
    example: "127.0.0.1",
  });
