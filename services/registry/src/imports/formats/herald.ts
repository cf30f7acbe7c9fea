import { PutDevice } from "@herald/contracts";
import { type Fields, type FormatReader, readableIdentifiers } from "./fields.ts";
import { plainName } from "./platform-names.ts";
import { definedFields, listFrom, textFrom, timeFrom } from "./values.ts";

/**
 * Fields of a Herald export that an import ignores: times, ids and states of the exporting installation, and the tokens of push types,
 * which an app sends at its next start.
 */
const ofExport = new Set([
  ...["tokens", "id", "inactive_reason", "identified_at", "last_opened_at", "created_at", "updated_at", "bucket"],
]);
const nested = ["metadata", "identifiers", "keys"] as const;
const lists = ["topics", "capabilities"] as const;
const scalars = Object.keys(PutDevice.shape).filter(
  (name) => ![...nested, ...lists, "last_seen_at"].some((other) => other === name),
);
const known = new Set(Object.keys(PutDevice.shape).map(plainName));

const withReadableIdentifiers = (fields: Fields, device: Record<string, unknown>) => {
  const identifiers = readableIdentifiers(fields, device.identifiers);
  return { device: identifiers === undefined ? device : { ...device, identifiers } };
};

const others = (fields: Fields, isLeft: (name: string) => boolean) =>
  Object.fromEntries(fields.rest(isLeft).map(({ key, value }) => [key, value]));

/** Herald's own export of devices, as NDJSON; and the same as CSV: nested values are JSON in their cells, or columns such as `metadata.plan`. */
export const herald: FormatReader = {
  // The device's schema refuses unknown fields.
  object: (fields) =>
    withReadableIdentifiers(
      fields,
      others(fields, (name) => ofExport.has(name)),
    ),
  cells: (fields) => {
    const columnsOf = (name: string) => {
      const whole = fields.object(name);
      const columns = fields.under(name).map(({ key, value }) => [key, value]);
      return definedFields({ ...whole, ...Object.fromEntries(columns) });
    };
    const listOf = (name: string) => {
      const list = fields.read([name], listFrom);
      return list?.length === 0 ? undefined : list;
    };
    const device = {
      ...Object.fromEntries(scalars.map((name) => [name, fields.text(name)])),
      // A text that is no time is refused with its reason.
      last_seen_at: fields.read(["last_seen_at"], (value) => timeFrom(value) ?? textFrom(value)),
      ...Object.fromEntries(nested.map((name) => [name, columnsOf(name)])),
      ...Object.fromEntries(lists.map((name) => [name, listOf(name)])),
      ...others(fields, (name) => ofExport.has(name) || known.has(plainName(name.split(".")[0] ?? ""))),
    };
    return withReadableIdentifiers(fields, definedFields(device) ?? {});
  },
};
