import { isObject, lineLimits } from "@herald/contracts";
import { hasCode, parseJson } from "@herald/kit";

/** Trimmed text; numbers and booleans become text. Undefined for blank text and other values. */
export const textFrom = (value: unknown): string | undefined => {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
};

/**
 * Parses text as JSON; undefined if it is not JSON. Other values are returned unchanged.
 * @throws HeraldError `validation-failed` for JSON that is too deep or has too many values.
 */
export const jsonIn = (value: unknown): unknown => {
  if (typeof value !== "string") return value ?? undefined;
  try {
    return parseJson(value, lineLimits.values);
  } catch (error) {
    if (!hasCode(error, "malformed-json")) throw error;
    return undefined;
  }
};

/** An object, or the JSON text of one. @throws HeraldError as {@link jsonIn}. */
export const objectFrom = (value: unknown): Record<string, unknown> | undefined => {
  const found = jsonIn(value);
  return isObject(found) ? found : undefined;
};

/** A list, the JSON text of one, or text with entries between commas and the like. @throws HeraldError as {@link jsonIn}. */
export const listFrom = (value: unknown): unknown[] | undefined => {
  if (Array.isArray(value)) return value;
  const text = textFrom(value);
  if (text === undefined) return undefined;
  const found = /^[[{]/.test(text) ? jsonIn(text) : text.split(/[\s,;|]+/).filter((entry) => entry !== "");
  return Array.isArray(found) ? found : undefined;
};

/** Databases and their exports write `t` or `f`, `true` or `false`, 1 or 0. */
export const booleanFrom = (value: unknown): boolean | undefined => {
  const text = textFrom(value)?.toLowerCase();
  if (text !== undefined && ["t", "true", "y", "yes", "1"].includes(text)) return true;
  return text !== undefined && ["f", "false", "n", "no", "0"].includes(text) ? false : undefined;
};

/** Seconds, milliseconds, microseconds and nanoseconds since 1970 differ in their digits from 1973 to 2286. */
const unitMs: Readonly<Record<number, number>> = {
  9: 1_000,
  10: 1_000,
  12: 1,
  13: 1,
  15: 1e-3,
  16: 1e-3,
  18: 1e-6,
  19: 1e-6,
};

const iso =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(Z|[A-Z]{3}|[+-]\d\d(?::?\d\d)?)?(?: UTC| GMT)?)?$/i;
/** As HTTP, emails and JavaScript write it. */
const spelled = /^[A-Z][a-z]{2},? .*(?:GMT|UTC|Z|[+-]\d{4})/;

const spelledOut = (text: string): string => {
  const [, day, clock, zone = "Z"] = iso.exec(text) ?? [];
  if (day === undefined) return spelled.test(text) ? text : "";
  if (clock === undefined) return day;
  // Exports without a time zone are in UTC.
  const offset = /^(?:Z|UTC|GMT)$/i.test(zone)
    ? "Z"
    : zone.replace(/^([+-]\d\d):?(\d\d)?$/, (_, h, m = "00") => `${h}:${m}`);
  return `${day}T${clock.replace(",", ".")}${offset}`;
};

/**
 * A time in ISO 8601 from text, a number since 1970 of any usual unit, or an object with seconds, as Firestore writes it. Undefined for values
 * that are not a time.
 */
export const timeFrom = (value: unknown): string | undefined => {
  const text = textFrom(isObject(value) ? (value._seconds ?? value.seconds) : value);
  if (text === undefined) return undefined;
  const [, digits] = /^(\d+)(?:\.\d*)?$/.exec(text) ?? [];
  const at = new Date(digits === undefined ? spelledOut(text) : Number(text) * (unitMs[digits.length] ?? Number.NaN));
  // Years beyond four digits have a form of their own, which Herald does not read.
  return at.getTime() < 253_402_300_800_000 ? at.toISOString() : undefined;
};

/** Removes undefined fields. Undefined if no field is left. */
export const definedFields = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined => {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};
