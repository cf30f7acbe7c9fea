import { fromCsvText, type ImportChunkV1, type ImportFormat, importLimits } from "@herald/contracts";
import { HeraldError, parseJson } from "@herald/kit";
import { CsvError, parse as parseCsv } from "csv-parse/sync";
import { pinpoint, sns } from "./formats/amazon.ts";
import { azureNh, registrationOf } from "./formats/azure-nh.ts";
import type { MapRow, Row } from "./formats/fields.ts";
import { firebase } from "./formats/firebase.ts";
import { herald } from "./formats/herald.ts";
import { onesignal } from "./formats/onesignal.ts";
import { parse } from "./formats/parse.ts";
import { pnta } from "./formats/pnta.ts";
import type { Refused } from "./put-devices.ts";

type Line = ImportChunkV1["content"][number];
type Read = { readonly device: unknown } | Refused;

/** `line`: for formats whose lines need not be JSON. */
const formats: Readonly<
  Record<ImportFormat, { object: MapRow; cells: MapRow; line?: (text: string) => Row | undefined }>
> = {
  herald,
  pinpoint: { object: pinpoint, cells: pinpoint },
  sns: { object: sns, cells: sns },
  onesignal: { object: onesignal, cells: onesignal },
  firebase: {
    object: firebase,
    cells: firebase,
    line: (text) => (/^[A-Za-z0-9_:-]{20,}$/.test(text) ? { token: text } : undefined),
  },
  parse: { object: parse, cells: parse },
  "azure-nh": { object: azureNh, cells: azureNh, line: registrationOf },
  pnta: { object: pnta, cells: pnta },
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

/** The cells of one row of CSV. @throws CsvError */
const cellsOf = (text: string): string[] => (parseCsv(text, { relax_column_count: true }) as string[][])[0] ?? [];

const csvRow = (columns: readonly string[], text: string): { readonly row: Row } | Refused => {
  try {
    const cells = cellsOf(text);
    if (cells.length !== columns.length)
      return refused("invalid-format", `has ${cells.length} cells where the header has ${columns.length}`);
    return { row: Object.fromEntries(columns.map((column, at) => [column, fromCsvText(cells[at] ?? "")])) };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return refused("invalid-format", "is not CSV: check its quotes");
  }
};

const jsonRow = (text: string): { readonly row: Row } | Refused => {
  try {
    const value = parseJson(Buffer.from(text));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { row: value as Row };
    return refused("invalid-type", "must be a JSON object; a list of them must be written one per line");
  } catch (error) {
    if (!(error instanceof HeraldError)) throw error;
    if (error.code === "malformed-json") return refused("invalid-format", "is not JSON; each line must be one object");
    return refused("invalid-value", error.faults.map(({ detail }) => detail).join("; "));
  }
};

/** Reads lines of a file as devices, not validated yet. With a `header` they are rows of CSV. */
export const createReadLine = (format: ImportFormat, header: string | undefined): ((line: Line) => Read) => {
  const { object, cells, line: fromLine } = formats[format];
  let columns: string[] = [];
  let headerProblem: Refused | undefined;
  try {
    if (header !== undefined) columns = cellsOf(header).map((column) => fromCsvText(column.trim()));
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    headerProblem = refused("invalid-format", "cannot be read: the header is not CSV");
  }
  const map = header === undefined ? object : cells;
  return (line) => {
    if ("problem" in line) {
      const [code, detail] = broken[line.problem];
      return refused(code, detail);
    }
    if (headerProblem) return headerProblem;
    if (line.text.includes("\0"))
      return refused("invalid-format", "has NUL characters; is the file UTF-16? It must be UTF-8");
    const own = header === undefined ? fromLine?.(line.text.trim()) : undefined;
    const read = own ? { row: own } : header === undefined ? jsonRow(line.text) : csvRow(columns, line.text);
    if ("result" in read) return read;
    const device = map(read.row);
    if (device !== undefined) return { device };
    return refused("invalid-value", "is no device that Herald can push to: its channel or platform is another one");
  };
};
