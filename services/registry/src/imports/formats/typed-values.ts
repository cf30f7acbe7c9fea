import { isObject } from "@herald/contracts";

/** Whether a line of JSON may contain values that {@link plainValues} unwraps. */
export const hasTypedValues = (line: string): boolean => line.includes('"$') || line.includes('"__type"');

/** Digits that a number keeps for certain. */
const exactDigits = 15;

/** A number as JSON has it; text if it would lose digits, and for NaN and Infinity. */
const number = (value: unknown): unknown => {
  const text = String(value);
  const isExact = text.replaceAll(/\D/g, "").length <= exactDigits || Number.isSafeInteger(Number(text));
  return Number.isFinite(Number(text)) && isExact ? Number(text) : text;
};

/** The date of a number or text; other values stay. */
const date = (value: unknown): unknown => {
  const ms = unwrapped(value);
  const at = new Date(typeof ms === "number" || typeof ms === "string" ? ms : Number.NaN);
  return Number.isNaN(at.getTime()) ? ms : at.toISOString();
};

/** Base64, and ids of subtype 4 as UUIDs. */
const binary = (base64: unknown, subtype: unknown): unknown => {
  const hex = Buffer.from(String(base64), "base64").toString("hex");
  const isUuid = Number.parseInt(String(subtype), 16) === 4 && hex.length === 32;
  return isUuid ? hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-") : base64;
};

const regex = (pattern: unknown, options: unknown): string => `/${pattern}/${options ?? ""}`;

type Unwrap = (value: unknown, rest: Readonly<Record<string, unknown>>) => unknown;

/** MongoDB Extended JSON, both versions: the first key of an object names its type. */
const ofMongo: Readonly<Record<string, Unwrap>> = {
  $oid: (id) => id,
  $date: date,
  $numberInt: number,
  $numberLong: number,
  $numberDouble: number,
  $numberDecimal: number,
  $uuid: (id) => id,
  $binary: (value, { $type }) => (isObject(value) ? binary(value.base64, value.subType) : binary(value, $type)),
  $timestamp: (value) => (isObject(value) ? date(Number(value.t) * 1_000) : value),
  $regularExpression: (value) => (isObject(value) ? regex(value.pattern, value.options) : value),
  $regex: (value, { $options }) => (isObject(value) ? value : regex(value, $options)),
  $symbol: (text) => text,
  $code: (text) => text,
  $undefined: () => undefined,
  $minKey: () => undefined,
  $maxKey: () => undefined,
};

/** Parse's JSON. Pointers and files stay objects. */
const ofParse: Readonly<Record<string, Unwrap>> = {
  Date: (_, { iso }) => iso,
  Bytes: (_, { base64 }) => base64,
};

const maxTypeKeys = 3;

const unwrapped = (value: unknown): unknown => {
  if (!isObject(value)) return value;
  const keys = Object.keys(value);
  const [key = ""] = keys;
  if (keys.length > maxTypeKeys) return value;
  if (keys.every((one) => one.startsWith("$")) && Object.hasOwn(ofMongo, key)) return ofMongo[key]?.(value[key], value);
  const type = value.__type;
  return typeof type === "string" && Object.hasOwn(ofParse, type) ? ofParse[type]?.(type, value) : value;
};

/** Parsed JSON in which the objects that stand for one value (dates, ids, long numbers) are that value, at every depth. */
export const plainValues = (value: unknown): unknown => {
  const plain = unwrapped(value);
  if (Array.isArray(plain)) return plain.map(plainValues);
  if (!isObject(plain)) return plain;
  return Object.fromEntries(Object.entries(plain).map(([key, inner]) => [key, plainValues(inner)]));
};
