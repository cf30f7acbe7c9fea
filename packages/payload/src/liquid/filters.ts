import {
  canonicalZone,
  createLastUsed,
  cutText,
  type LiquidExpression,
  type LiquidFilter,
  type LiquidFilterName,
  liquidLimits,
} from "@herald/contracts";
import { wallTime } from "@herald/rules";

/** The keywords `nil`, `empty` and `blank`: they equal no value, texts without characters, and texts without visible ones. */
export const nil = Symbol("nil");
export const empty = Symbol("empty");
export const blank = Symbol("blank");

/** What an expression can be. Undefined: a value that was not given. */
export type Runtime = string | number | boolean | undefined | typeof nil | typeof empty | typeof blank;

/**
 * A text that cannot be rendered with these values. `value-missing`: it shows a value that was not given. The message names values and never
 * shows one: it is stored where an erasure of a person does not look.
 */
export class LiquidRenderError extends Error {
  readonly reason: "value-missing" | "render-failed" | "payload-too-large";
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

/** Counts characters as people do: an emoji of two code units is one. Reads no further than it keeps. */
const truncate = (value: Runtime, length: number, ending: string): Runtime => {
  const text = textOf(value);
  const kept = Math.max(length - [...ending].length, 0);
  let [count, at, end] = [0, 0, 0];
  for (const character of text) {
    if (count === kept) end = at;
    if (count++ >= Math.max(length, 0)) return text.slice(0, end) + ending;
    at += character.length;
  }
  return value;
};

type Formats = {
  readonly date: Intl.DateTimeFormat;
  readonly number: Intl.NumberFormat;
  readonly currency: Intl.NumberFormat;
  readonly plural: Intl.PluralRules;
};
/** More than the texts of one notification use, in all of its languages. */
const formats = createLastUsed<Formats[keyof Formats]>(128);

/** A format takes longer to create than a thousand texts to render. `key`: its locale and arguments. Throws what `Intl` throws. */
const formatOf = <Kind extends keyof Formats>(kind: Kind, key: string, create: () => Formats[Kind]): Formats[Kind] =>
  formats(`${kind}/${key}`, create) as Formats[Kind];

/**
 * V8 does not know the 20 KB of a date's format, which are outside of its heap, and removes dropped ones only after hundreds of megabytes. An
 * empty buffer, which takes no memory until it is written, makes it do so after some 600.
 */
const weightBytes = 100_000;
const createDateFormat = (locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  Object.assign(new Intl.DateTimeFormat(locale, options), { weight: new ArrayBuffer(weightBytes) });

/** A value as messages name it: a path, or what the text itself says. */
export const valueName = (expression: LiquidExpression | undefined): string => {
  if (expression !== undefined && "path" in expression) return `\`${expression.path.join(".")}\``;
  return expression !== undefined && "value" in expression ? cutText(JSON.stringify(expression.value), 100) : "a value";
};

const refused = (filter: LiquidFilterName, needed: string, value: LiquidExpression | undefined): LiquidRenderError =>
  failed(`the filter \`${filter}\` cannot use ${valueName(value)}: it needs ${needed}`);

/** `Number` also reads `0x10` and `0b1`. */
const decimal = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;

const numeric = ({ value, from, filter }: Call): number => {
  const number = typeof value === "string" && decimal.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return number;
  throw refused(filter, "a number", from);
};

/** Clocks of every zone show a year of three or four digits. */
const times = { first: Date.UTC(100, 0, 2), last: Date.UTC(9999, 11, 30) } as const;

/** A day, or a time of a day: in UTC if it has no offset. */
const timeForm = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/i;

/** `Date.parse` also reads `order 12`, as December 2001, and 30 February. */
const parseTime = (text: string): number => {
  const [, day, offset] = timeForm.exec(text) ?? [];
  const begin = Date.parse(day ?? "");
  if (Number.isNaN(begin) || !new Date(begin).toISOString().startsWith(`${day}T`)) return Number.NaN;
  return Date.parse(offset === undefined && text !== day ? `${text}Z` : text);
};

const timeOf = ({ value, from }: Call): number => {
  const at = typeof value === "number" ? Math.trunc(value) : parseTime(textOf(value));
  if (typeof value !== "boolean" && at >= times.first && at <= times.last) return at;
  throw refused("date", "a time such as 2030-01-31T09:00:00Z", from);
};

const styles = ["full", "long", "medium", "short"] as const;
type Style = (typeof styles)[number];
const styleOf = (value: Runtime, given: LiquidExpression | undefined, otherwise?: Style): Style | undefined => {
  if (value === undefined) return otherwise;
  const style = styles.find((one) => one === value);
  if (style === undefined) throw refused("date", `one of the styles ${styles.join(", ")}`, given);
  return style;
};

/** What zones are called in a language: more than the names of all of them, in summer and winter. */
const zoneNames = createLastUsed<string>(2_000);

/** `offset`: of the zone's clocks at this time. */
const zoneName = (locale: string, timeStyle: Style, zone: string, at: number, offset: number): string =>
  zoneNames(`${locale}/${timeStyle}/${zone}/${offset}`, () => {
    const parts = createDateFormat(locale, { timeStyle, timeZone: zone }).formatToParts(at);
    return parts.find(({ type }) => type === "timeZoneName")?.value ?? zone;
  });

/**
 * Formats the time of a zone's clocks as if they were in UTC, because a format of each zone would be one for each device. Only the name of
 * the zone is not the same then.
 */
const dateOf = (call: Call): string => {
  const { args, named, given, locale } = call;
  const dateStyle = styleOf(args[0], given.args[0], named.time === undefined ? "medium" : undefined);
  const timeStyle = styleOf(named.time, given.named?.time);
  const zone = named.zone === undefined ? "UTC" : canonicalZone(textOf(named.zone));
  if (zone === undefined) throw refused("date", "an IANA time zone such as Europe/Berlin", given.named?.zone);
  const at = timeOf(call);
  const options = { dateStyle, timeStyle, timeZone: "UTC" };
  const format = formatOf("date", `${locale}/${dateStyle}/${timeStyle}`, () => createDateFormat(locale, options));
  if (zone === "UTC") return format.format(at);
  const wall = wallTime(at, zone);
  const text = format.format(wall);
  if (timeStyle !== "full" && timeStyle !== "long") return text;
  const name = zoneName(locale, timeStyle, zone, at, wall - at);
  return text.replace(zoneName(locale, timeStyle, "UTC", at, 0), () => name);
};

let knownCurrencies: ReadonlySet<string> | undefined;
const currencies = (): ReadonlySet<string> => {
  knownCurrencies ??= new Set(Intl.supportedValuesOf("currency"));
  return knownCurrencies;
};

type Call = {
  readonly filter: LiquidFilterName;
  /** The filter as it was written, with the names of its values. */
  readonly given: LiquidFilter;
  /** What the value was before all filters. */
  readonly from: LiquidExpression;
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
  date: dateOf,
  number: (call) => {
    const { args, given, locale } = call;
    const places = args[0] === undefined ? undefined : numberOf(args[0]);
    if (places !== undefined && !(places >= 0 && places <= 100))
      throw refused("number", "0 to 100 decimal places", given.args[0]);
    const options = places === undefined ? {} : { minimumFractionDigits: places, maximumFractionDigits: places };
    const create = () => new Intl.NumberFormat(locale, options);
    return formatOf("number", `${locale}/${places && Math.floor(places)}`, create).format(numeric(call));
  },
  currency: (call) => {
    const { args, given, locale } = call;
    const currency = textOf(args[0]).toUpperCase();
    // A format takes any three letters, and shows them.
    if (!currencies().has(currency)) throw refused("currency", "a code of ISO 4217 such as EUR", given.args[0]);
    const create = () => new Intl.NumberFormat(locale, { style: "currency", currency });
    return formatOf("currency", `${locale}/${currency}`, create).format(numeric(call));
  },
  plural: (call) => {
    const { named, locale } = call;
    const rules = formatOf("plural", locale, () => new Intl.PluralRules(locale));
    return named[rules.select(numeric(call))] ?? named.other;
  },
};

/** The result of a filter. Throws {@link LiquidRenderError} for values that it cannot take, and when the result is too long. */
export const applyFilter = (call: Call): Runtime => {
  const result = byName[call.filter](call);
  if (typeof result === "string" && result.length > liquidLimits.resultLength)
    throw failed(
      `the result of the filter \`${call.filter}\` for ${valueName(call.from)} is longer than ${liquidLimits.resultLength} characters`,
    );
  return result;
};
