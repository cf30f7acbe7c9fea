import { type LiquidFilterName, liquidLimits } from "@herald/contracts";

/** The keywords `nil`, `empty` and `blank`: they equal no value, texts without characters, and texts without visible ones. */
export const nil = Symbol("nil");
export const empty = Symbol("empty");
export const blank = Symbol("blank");

/** What an expression can be. Undefined: a value that was not given. */
export type Runtime = string | number | boolean | undefined | typeof nil | typeof empty | typeof blank;

/** A text that cannot be rendered with these values. `value-missing`: it shows a value that was not given. */
export class LiquidRenderError extends Error {
  readonly reason: "value-missing" | "render-failed";
  constructor(reason: LiquidRenderError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

const failed = (message: string): LiquidRenderError => new LiquidRenderError("render-failed", message);

/** The value of a keyword; other values are their own. */
export const plainValue = (value: Runtime): Exclude<Runtime, symbol> | null => {
  if (typeof value !== "symbol") return value;
  return value === nil ? null : "";
};

export const textOf = (value: Runtime): string => String(plainValue(value) ?? "");

export const isTrue = (value: Runtime): boolean => value !== false && value !== undefined && value !== nil;

const numberOf = (value: Runtime): number => Number(plainValue(value) ?? 0) || 0;

/** Moves the decimal point. Multiplying with a power of ten would add an error of its own: 1.005 * 100 is 100.49999999999999. */
const shift = (value: number, places: number): number => {
  const [digits, exponent = "0"] = `${value}`.split("e");
  return Number(`${digits}e${Number(exponent) + places}`);
};

/** Rounds halves away from zero. */
const round = (value: number, places: number): number => {
  const shifted = shift(Math.abs(value), places);
  if (!(shifted <= Number.MAX_SAFE_INTEGER)) return value;
  return Math.sign(value) * shift(Math.round(shifted), -places);
};

/** Counts characters as people do: an emoji of two code units is one. */
const truncate = (value: Runtime, length: number, ending: string): Runtime => {
  const characters = [...textOf(value)];
  if (characters.length <= Math.max(length, 0)) return value;
  return characters.slice(0, Math.max(length - [...ending].length, 0)).join("") + ending;
};

/** More formats than the texts of a project use; a format takes longer to create than a thousand texts to render. */
const maxFormats = 500;
const formats = new Map<string, unknown>();

/** `name`: of the filter, the locale and the arguments. */
const cached = <Format>(name: string, create: () => Format, what: string): Format => {
  const known = formats.get(name);
  if (known !== undefined) return known as Format;
  try {
    const created = create();
    if (formats.size >= maxFormats) formats.clear();
    formats.set(name, created);
    return created;
  } catch {
    throw failed(what);
  }
};

const numeric = (value: Runtime, filter: string): number => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return number;
  throw failed(`the filter \`${filter}\` needs a number, not ${JSON.stringify(textOf(value)).slice(0, 100)}`);
};

const timeOf = (value: Runtime): Date => {
  const at = new Date(typeof value === "number" ? value : textOf(value));
  if (typeof value !== "boolean" && !Number.isNaN(at.getTime())) return at;
  const shown = JSON.stringify(textOf(value)).slice(0, 100);
  throw failed(`the filter \`date\` needs a time such as 2030-01-31T09:00:00Z, not ${shown}`);
};

const styles = ["full", "long", "medium", "short"] as const;
type Style = (typeof styles)[number];
const styleOf = (value: Runtime, otherwise?: Style): Style | undefined => {
  if (value === undefined) return otherwise;
  const style = styles.find((one) => one === value);
  if (style === undefined) throw failed(`the filter \`date\` has the styles ${styles.join(", ")}`);
  return style;
};

type Call = {
  readonly value: Runtime;
  readonly args: readonly Runtime[];
  readonly named: Readonly<Record<string, Runtime>>;
  readonly locale: string;
};

const byName: Readonly<Record<LiquidFilterName, (call: Call) => Runtime>> = {
  default: ({ value, args: [otherwise], named }) => {
    if (value === false && named.allow_false) return value;
    return isTrue(value) && plainValue(value) !== "" ? value : otherwise;
  },
  upcase: ({ value }) => textOf(value).toUpperCase(),
  downcase: ({ value }) => textOf(value).toLowerCase(),
  capitalize: ({ value }) => {
    const text = textOf(value);
    return text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();
  },
  truncate: ({ value, args: [length = 50, ending = "..."] }) =>
    truncate(value, Math.ceil(numberOf(length)), textOf(ending)),
  append: ({ value, args: [more] }) => textOf(value) + textOf(more),
  prepend: ({ value, args: [more] }) => textOf(more) + textOf(value),
  plus: ({ value, args: [other] }) => numberOf(value) + numberOf(other),
  minus: ({ value, args: [other] }) => numberOf(value) - numberOf(other),
  times: ({ value, args: [other] }) => numberOf(value) * numberOf(other),
  round: ({ value, args: [places = 0] }) => round(numberOf(value), numberOf(places)),
  date: ({ value, args: [style], named: { time, zone = "UTC" }, locale }) => {
    const options = {
      dateStyle: styleOf(style, time === undefined ? "medium" : undefined),
      timeStyle: styleOf(time),
      timeZone: textOf(zone),
    };
    const problem = `the filter \`date\` does not know the zone ${JSON.stringify(textOf(zone)).slice(0, 100)}`;
    const format = cached(
      `date/${locale}/${JSON.stringify(options)}`,
      () => new Intl.DateTimeFormat(locale, options),
      problem,
    );
    return format.format(timeOf(value));
  },
  number: ({ value, args: [digits], locale }) => {
    const places = digits === undefined ? undefined : numberOf(digits);
    const options = places === undefined ? {} : { minimumFractionDigits: places, maximumFractionDigits: places };
    const problem = "the filter `number` shows 0 to 100 decimal places";
    const format = cached(`number/${locale}/${places}`, () => new Intl.NumberFormat(locale, options), problem);
    return format.format(numeric(value, "number"));
  },
  currency: ({ value, args: [code], locale }) => {
    const currency = textOf(code);
    const problem = `the filter \`currency\` needs a code such as EUR, not ${JSON.stringify(currency).slice(0, 100)}`;
    const create = () => new Intl.NumberFormat(locale, { style: "currency", currency });
    return cached(`currency/${locale}/${currency}`, create, problem).format(numeric(value, "currency"));
  },
  plural: ({ value, named, locale }) => {
    const rules = cached(`plural/${locale}`, () => new Intl.PluralRules(locale), "");
    return named[rules.select(numeric(value, "plural"))] ?? named.other;
  },
};

/** The result of a filter. Throws {@link LiquidRenderError} for values that it cannot take, and when the result is too long. */
export const applyFilter = (name: LiquidFilterName, call: Call): Runtime => {
  const result = byName[name](call);
  if (typeof result === "string" && result.length > liquidLimits.resultLength)
    throw failed(`the result of the filter \`${name}\` is longer than ${liquidLimits.resultLength} characters`);
  return result;
};
