import { importLimits, readIdentifiers } from "@herald/contracts";
import { HeraldError, hasCode, parseJson } from "@herald/kit";

/** A row of an export: the fields of a JSON object, or the cells of a CSV row by their columns. */
export type ImportRow = Readonly<Record<string, unknown>>;

/** A device as `PUT /devices` takes it, not validated yet; undefined: the row is not a push device. */
export type MapRow = (row: ImportRow) => Record<string, unknown> | undefined;

/** Trimmed text; numbers and booleans become text. Undefined for blank text and other values. */
export const textFrom = (value: unknown): string | undefined => {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
};

export const record = (value: unknown): ImportRow =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as ImportRow) : {};

export const arrayFrom = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Parses text as JSON; undefined if it is not JSON. Other values are returned unchanged.
 * @throws HeraldError `validation-failed` for JSON that is too deep or has too many values.
 */
export const jsonIn = (value: unknown): unknown => {
  if (typeof value !== "string") return value ?? undefined;
  try {
    return parseJson(value, importLimits.values);
  } catch (error) {
    if (!hasCode(error, "malformed-json")) throw error;
    return undefined;
  }
};

/** A time in ISO 8601. Numbers are seconds since 1970. Undefined for values that are not a time. */
export const time = (value: unknown): string | undefined => {
  const given = textFrom(value);
  if (given === undefined) return undefined;
  const isSeconds = /^\d{9,10}$/.test(given);
  // Exports without a time zone are in UTC.
  const zoned = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(given) ? `${given.replace(" ", "T")}Z` : given;
  const at = new Date(isSeconds ? Number(given) * 1_000 : zoned);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
};

/** Removes undefined fields. Undefined if no field is left. */
export const definedFields = (fields: ImportRow): Record<string, unknown> | undefined => {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};

/**
 * The device with only the fields that the export has. `labels`: tags or channels; those that are valid topic names become topics, the
 * others become `tags` in the metadata.
 * @throws HeraldError `validation-failed` for too many labels.
 */
export const device = ({ labels, metadata, identifiers, ...fields }: ImportRow): Record<string, unknown> => {
  if (arrayFrom(labels).length > importLimits.values)
    throw new HeraldError("validation-failed", `topics: may have at most ${importLimits.values} entries`);
  const names = [...new Set(arrayFrom(labels).flatMap((label) => textFrom(label) ?? []))];
  const topics = names.filter((name) => topicName.test(name));
  const tags = names.filter((name) => !topicName.test(name));
  const all = {
    ...fields,
    topics: topics.length > 0 ? topics : undefined,
    metadata: definedFields({ ...safeKeys(record(metadata)), ...(tags.length > 0 && { tags }) }),
    // A time zone or locale that Herald cannot read is left out: the device matters more.
    identifiers: definedFields(readIdentifiers(safeKeys(record(identifiers))).identifiers),
  };
  return definedFields(all) ?? {};
};

/** Replaces characters that Herald refuses in keys: `.` separates paths, and `$` is reserved for the database. */
const safeKeys = (data: ImportRow): Record<string, unknown> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key.replaceAll(/[.$]/g, "_"), value]));

const topicName = /^(?!\.{1,2}$)(?!all$)(?!(?:dev|top)_)[A-Za-z0-9._~-]{1,128}$/;

/** Names of platforms and push services, with the device fields that each implies. */
const platforms: Readonly<Record<string, ImportRow & { readonly platform: "ios" | "android" | "web" }>> = {
  APNS: { platform: "ios", environment: "production" },
  APNS_SANDBOX: { platform: "ios", environment: "sandbox" },
  GCM: { platform: "android" },
  FCM: { platform: "android" },
  ios: { platform: "ios" },
  iphone: { platform: "ios" },
  apple: { platform: "ios" },
  apns: { platform: "ios" },
  android: { platform: "android" },
  gcm: { platform: "android" },
  fcm: { platform: "android" },
  fcmv1: { platform: "android" },
  web: { platform: "web" },
  browser: { platform: "web" },
};

/** Undefined for email addresses, phone numbers and services that Herald does not push to. */
export const platformNamed = (name: string | undefined) => platforms[name ?? ""];
