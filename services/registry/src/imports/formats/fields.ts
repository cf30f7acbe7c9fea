/** A row of an export: the fields of a JSON object, or the cells of a CSV row by their columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A device as `PUT /devices` takes it, not validated yet; undefined: the row is not a push device. */
export type MapRow = (row: Row) => Record<string, unknown> | undefined;

/** A text that is there; numbers and booleans as texts. */
export const text = (value: unknown): string | undefined => {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
};

export const record = (value: unknown): Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Row) : {};

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** A JSON value in a text; undefined where it is none. */
export const jsonIn = (value: unknown): unknown => {
  if (typeof value !== "string") return value ?? undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
};

/** A time as Herald writes it. Numbers are seconds since 1970. Undefined for what is no time. */
export const time = (value: unknown): string | undefined => {
  const given = text(value);
  if (given === undefined) return undefined;
  const isSeconds = /^\d{9,10}$/.test(given);
  // Exports without a time zone are in UTC.
  const zoned = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(given) ? `${given.replace(" ", "T")}Z` : given;
  const at = new Date(isSeconds ? Number(given) * 1_000 : zoned);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
};

/** Without the fields that are undefined; undefined where none is left. */
export const compact = (fields: Row): Record<string, unknown> | undefined => {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};

/** The device with only the fields that the export has. */
export const device = (fields: Row): Record<string, unknown> => compact(fields) ?? {};

/** Keys that Herald takes: it keeps `.` for paths and `$` for the database. */
export const safeKeys = (data: Row): Record<string, unknown> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key.replaceAll(/[.$]/g, "_"), value]));

const topicName = /^(?!\.{1,2}$)(?!all$)(?!(?:dev|top)_)[A-Za-z0-9._~-]{1,128}$/;

/** Tags or channels: those that can be names of topics become topics, the others stay as `tags` in the metadata. */
export const topicsAndTags = (values: readonly unknown[]): { topics?: string[]; tags?: string[] } => {
  const names = [...new Set(values.flatMap((value) => text(value) ?? []))];
  const topics = names.filter((name) => topicName.test(name));
  const tags = names.filter((name) => !topicName.test(name));
  return { ...(topics.length > 0 && { topics }), ...(tags.length > 0 && { tags }) };
};
