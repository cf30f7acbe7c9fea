import { PutDevice } from "@herald/contracts";
import { arrayFrom, definedFields, jsonIn, type MapRow, record, textFrom } from "./fields.ts";

/**
 * Fields of a Herald export that an import ignores: times, ids and verdicts of the exporting installation, and the tokens of push types,
 * which an app sends at its next start.
 */
const ofExport = new Set(["tokens", "id", "inactive_reason", "identified_at", "created_at", "updated_at", "bucket"]);
const known = new Set(Object.keys(PutDevice.shape));
const scalars = [
  "token",
  "platform",
  "provider",
  "installation_id",
  "environment",
  "app",
  "token_kind",
  "vapid_key_id",
  "user_id",
  "status",
  "last_seen_at",
];

/** Herald's own export of devices, as NDJSON. The device's schema refuses unknown fields. */
const fromObject: MapRow = (row) => Object.fromEntries(Object.entries(row).filter(([name]) => !ofExport.has(name)));

/** The same as CSV: nested values are JSON in their cells, or columns such as `metadata.plan`; empty cells are ignored. */
const fromCells: MapRow = (row) => {
  const nested = (name: string) => {
    const columns = Object.entries(row)
      .filter(([column, cell]) => column.startsWith(`${name}.`) && textFrom(cell) !== undefined)
      .map(([column, cell]) => [column.slice(name.length + 1), cell] as const);
    const all = { ...record(jsonIn(row[name])), ...Object.fromEntries(columns) };
    return Object.keys(all).length === 0 ? undefined : all;
  };
  const list = (name: string) => jsonIn(row[name]) ?? textFrom(row[name])?.split(/[\s,;|]+/);
  const [topics, capabilities] = [list("topics"), list("capabilities")];
  const other = Object.entries(row).filter(([name]) => !known.has(name.split(".")[0] ?? "") && !ofExport.has(name));
  const fields = {
    ...Object.fromEntries(scalars.map((name) => [name, textFrom(row[name])])),
    metadata: nested("metadata"),
    identifiers: nested("identifiers"),
    keys: nested("keys"),
    topics: arrayFrom(topics).length === 0 ? undefined : topics,
    capabilities: arrayFrom(capabilities).length === 0 ? undefined : capabilities,
    ...Object.fromEntries(other.filter(([, cell]) => textFrom(cell) !== undefined)),
  };
  return definedFields(fields) ?? {};
};

export const herald: { readonly object: MapRow; readonly cells: MapRow } = { object: fromObject, cells: fromCells };
