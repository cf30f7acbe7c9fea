import { csvRow, fromCsvText, type ImportChunkV1, type ImportFormat, importLimits } from "@herald/contracts";
import { hasCode, parseJson } from "@herald/kit";
import type { Refused } from "../requests/put-devices.ts";
import { pinpoint, sns } from "./formats/amazon.ts";
import { azureNh, registrationOf } from "./formats/azure-nh.ts";
import type { ImportRow, MapRow } from "./formats/fields.ts";
import { firebase } from "./formats/firebase.ts";
import { herald } from "./formats/herald.ts";
import { onesignal } from "./formats/onesignal.ts";
import { parse } from "./formats/parse.ts";
import { pnta } from "./formats/pnta.ts";

type Line = ImportChunkV1["content"][number];
type Read = { readonly device: unknown } | Refused;

/** `line`: for formats whose lines need not be JSON. */
const formats: Readonly<
  Record<ImportFormat, { object: MapRow; cells: MapRow; line?: (text: string) => ImportRow | undefined }>
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

type ReadRow = (text: string) => { readonly row: ImportRow } | Refused;

/** Reads rows of CSV as its header names their cells. */
const csvReader = (header: string): ReadRow => {
  const names = csvRow(header, importLimits.columns);
  if (names === "broken") return () => refused("invalid-format", "cannot be read: the header is not CSV");
  if (names === "too-many")
    return () => refused("too-many", `cannot be read: the header has more than ${importLimits.columns} columns`);
  const columns = names.map((name) => fromCsvText(name.trim()));
  return (text) => {
    const cells = csvRow(text, importLimits.columns);
    if (cells === "broken") return refused("invalid-format", "is not CSV: check its quotes");
    if (cells === "too-many") return refused("too-many", `has more than ${importLimits.columns} cells`);
    if (cells.length !== columns.length)
      return refused("invalid-format", `has ${cells.length} cells where the header has ${columns.length}`);
    return { row: Object.fromEntries(columns.map((column, at) => [column, fromCsvText(cells[at] ?? "")])) };
  };
};

const jsonRow: ReadRow = (text) => {
  const value = parseJson(text, importLimits.values);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { row: value as ImportRow };
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

/** Reads lines of a file as devices, not validated yet. With a `header` they are rows of CSV. */
export const createReadLine = (format: ImportFormat, header: string | undefined): ((line: Line) => Read) => {
  const { object, cells, line: fromLine } = formats[format];
  const [map, readRow] = header === undefined ? [object, jsonRow] : [cells, csvReader(header)];
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
      const device = map(read.row);
      if (device !== undefined) return { device };
      return refused("invalid-value", "is no device that Herald can push to: its channel or platform is another one");
    });
  };
};
