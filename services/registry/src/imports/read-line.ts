import {
  fromCsvText,
  type ImportChunkV1,
  type ImportFormat,
  importLimits,
  isObject,
  unsupportedPlatform,
} from "@herald/contracts";
import { csvDelimiter, csvRow, hasCode, parseJson } from "@herald/kit";
import type { Refused } from "../requests/put-devices.ts";
import type { ChunkReport } from "./chunk-report.ts";
import { pinpoint, sns } from "./formats/amazon.ts";
import { azureNh } from "./formats/azure-nh.ts";
import { createFields, type FormatReader, type ImportRow } from "./formats/fields.ts";
import { firebase } from "./formats/firebase.ts";
import { herald } from "./formats/herald.ts";
import { onesignal } from "./formats/onesignal.ts";
import { parse } from "./formats/parse.ts";
import { pnta } from "./formats/pnta.ts";
import { hasTypedValues, plainValues } from "./formats/typed-values.ts";

type Line = ImportChunkV1["content"][number];
type Read = { readonly device: unknown } | Refused;

const formats: Readonly<Record<ImportFormat, FormatReader>> = {
  herald,
  pinpoint,
  sns,
  onesignal,
  firebase,
  parse,
  "azure-nh": azureNh,
  pnta,
};

const broken = {
  "too-long": [
    "too-long",
    `is longer than ${importLimits.lineBytes} bytes; in CSV, a quote that is not closed makes one line of many`,
  ],
  "not-utf8": ["invalid-format", "is not UTF-8; save the file as UTF-8 and import it again"],
} as const;

const refused = (code: string, detail: string): Refused => ({
  result: "refused",
  problems: [{ field: "", detail, code }],
});

type ReadRow = (text: string) => { readonly row: ImportRow } | Refused;

/** The cells that are not blank, by their columns. Cells of one column twice become a list. */
const rowOf = (columns: readonly string[], cells: readonly string[]): ImportRow => {
  const row = new Map<string, string | string[]>();
  for (const [at, column] of columns.entries()) {
    const cell = fromCsvText(cells[at] ?? "");
    if (cell.trim() === "") continue;
    const other = row.get(column);
    row.set(column, other === undefined ? cell : [other, cell].flat());
  }
  return Object.fromEntries(row);
};

/** Reads rows of CSV as its header names their cells. */
const csvReader = (header: string): ReadRow => {
  const delimiter = csvDelimiter(header);
  const names = csvRow(header, importLimits.columns, delimiter);
  if (names === "broken") return () => refused("invalid-format", "cannot be read: the header is not CSV");
  if (names === "too-many")
    return () => refused("too-many", `cannot be read: the header has more than ${importLimits.columns} columns`);
  const columns = names.map((name) => fromCsvText(name.trim()));
  return (text) => {
    const cells = csvRow(text, importLimits.columns, delimiter);
    if (cells === "broken") return refused("invalid-format", "is not CSV: check its quotes");
    if (cells === "too-many") return refused("too-many", `has more than ${importLimits.columns} cells`);
    if (cells.length !== columns.length)
      return refused("invalid-format", `has ${cells.length} cells where the header has ${columns.length}`);
    return { row: rowOf(columns, cells) };
  };
};

/** Reads a line of JSON. Objects of Herald's own export stay as they are, so that metadata comes back as it was. */
const jsonReader =
  (format: ImportFormat): ReadRow =>
  (text) => {
    const parsed = parseJson(text, importLimits.values);
    const value = format !== "herald" && hasTypedValues(text) ? plainValues(parsed) : parsed;
    if (isObject(value)) return { row: value };
    return refused("invalid-type", "must be a JSON object; a list of them must be written one per line");
  };

/** Runs a step that parses JSON of the file. */
const refusingJson = <Result>(step: () => Result): Result | Refused => {
  try {
    return step();
  } catch (error) {
    if (!hasCode(error, "malformed-json", "validation-failed")) throw error;
    if (error.code === "malformed-json") return refused("invalid-format", "is not JSON; each line must be one object");
    return refused("invalid-value", error.faults.map(({ detail }) => detail).join("; "));
  }
};

/**
 * Reads lines of a file as devices, not validated yet. With a `header` they are rows of CSV. `report` gets what is said about fields and
 * platforms of the lines.
 */
export const createReadLine = (
  format: ImportFormat,
  header: string | undefined,
  report?: ChunkReport,
): ((line: Line) => Read) => {
  const { groups, object, cells = object, line: fromLine } = formats[format];
  const [map, readRow] = header === undefined ? [object, jsonReader(format)] : [cells, csvReader(header)];
  return (line) => {
    if ("problem" in line) {
      const [code, detail] = broken[line.problem];
      return refused(code, detail);
    }
    if (line.text.includes("\0"))
      return refused("invalid-format", "has NUL characters; is the file UTF-16? It must be UTF-8");
    return refusingJson(() => {
      const own = header === undefined ? fromLine?.(line.text.trim()) : undefined;
      const read = own ? { row: own } : readRow(line.text);
      if ("result" in read) return read;
      const fields = createFields(read.row, groups);
      const mapped = map(fields);
      if ("unsupported" in mapped) {
        report?.addUnsupported();
        return refused(unsupportedPlatform, `is for ${mapped.unsupported}: Herald has no provider for it`);
      }
      report?.addNotes(fields.notes());
      return mapped;
    });
  };
};
