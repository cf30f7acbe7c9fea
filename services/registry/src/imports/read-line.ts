import { type ImportFormat, unsupportedPlatform } from "@herald/contracts";
import { createLineReader, type FileLine, lineJson, type RefusedLine, refuseLine } from "@herald/kit";
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

/** The cells that are not blank, by their columns. Cells of one column twice become a list. */
const rowOf = (columns: readonly string[], cells: readonly string[]): ImportRow => {
  const row = new Map<string, string | string[]>();
  for (const [at, column] of columns.entries()) {
    const cell = cells[at] ?? "";
    if (cell.trim() === "") continue;
    const other = row.get(column);
    row.set(column, other === undefined ? cell : [other, cell].flat());
  }
  return Object.fromEntries(row);
};

/** The JSON of a line. Objects of Herald's own export stay as they are, so that metadata comes back as it was. */
const jsonOf = (text: string, format: ImportFormat): unknown => {
  const value = lineJson(text);
  return format !== "herald" && hasTypedValues(text) ? plainValues(value) : value;
};

/**
 * Reads lines of a file as devices, not validated yet. With a `header` they are rows of CSV. `report` gets what is said about fields and
 * platforms of the lines.
 */
export const createReadLine = (
  format: ImportFormat,
  header: string | undefined,
  report?: ChunkReport,
): ((line: FileLine) => { readonly device: unknown } | RefusedLine) => {
  const { groups, object, cells = object, line: fromLine } = formats[format];
  const map = header === undefined ? object : cells;
  const ofText = (text: string) => fromLine?.(text.trim()) ?? jsonOf(text, format);
  return createLineReader({ header, ofCells: rowOf, ofText }, (row) => {
    const fields = createFields(row, groups);
    const mapped = map(fields);
    if ("unsupported" in mapped) {
      report?.addUnsupported();
      return refuseLine(unsupportedPlatform, `is for ${mapped.unsupported}: Herald has no provider for it`);
    }
    report?.addNotes(fields.notes());
    return mapped;
  });
};
