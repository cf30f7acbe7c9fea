import { type EntryProblem, fromCsvText, isObject, type LineError, lineLimits } from "@herald/contracts";
import { hasCode } from "../herald-error.ts";
import { parseJson } from "../http/json-body.ts";
import { csvDelimiter, csvRow } from "./csv-row.ts";

/** A line of an uploaded file, or the reason why it is unreadable. */
export type FileLine = { readonly text: string } | { readonly problem: "too-long" | "not-utf8" };

/** Why a line is left out. */
export type RefusedLine = { readonly problems: EntryProblem[] };

/** A line with one problem. `field`: absent: the whole line. */
export const refuseLine = (code: string, detail: string, field = ""): RefusedLine => ({
  problems: [{ field, detail, code }],
});

/** The errors that are kept of a refused line. */
export const lineErrors = (line: number, problems: readonly EntryProblem[]): LineError[] =>
  problems.map(({ field, detail, code }) => ({ line, field, reason: detail, code }));

const unreadable = {
  "too-long": refuseLine(
    "too-long",
    `is longer than ${lineLimits.bytes} bytes; in CSV, a quote that is not closed makes one line of many`,
  ),
  "not-utf8": refuseLine("invalid-format", "is not UTF-8; save the file as UTF-8 and upload it again"),
} as const;

/** The names of the columns that a header of CSV has, or why it cannot be read. */
export const csvColumns = (header: string): readonly string[] | "broken" | "too-many" => {
  const names = csvRow(header, lineLimits.columns, csvDelimiter(header));
  return typeof names === "string" ? names : names.map((name) => fromCsvText(name.trim()));
};

type Row = Readonly<Record<string, unknown>>;
type ReadRow = (text: string) => { readonly row: Row } | RefusedLine;

type Options = {
  /** The header of a CSV file; absent: each line stands alone. */
  readonly header: string | undefined;
  /** The row of some cells, of which there are as many as columns. */
  readonly ofCells: (columns: readonly string[], cells: readonly string[]) => Row;
  /** The value of a line that stands alone. Default: its JSON. */
  readonly ofText?: ((text: string) => unknown) | undefined;
};

const csvReader = (header: string, ofCells: Options["ofCells"]): ReadRow => {
  const columns = csvColumns(header);
  if (typeof columns === "string") return () => refuseLine("invalid-format", "cannot be read: the header is not CSV");
  const delimiter = csvDelimiter(header);
  return (text) => {
    const cells = csvRow(text, lineLimits.columns, delimiter);
    if (cells === "broken") return refuseLine("invalid-format", "is not CSV: check its quotes");
    if (cells === "too-many") return refuseLine("too-many", `has more than ${lineLimits.columns} cells`);
    if (cells.length !== columns.length)
      return refuseLine("invalid-format", `has ${cells.length} cells where the header has ${columns.length}`);
    return { row: ofCells(columns, cells.map(fromCsvText)) };
  };
};

/** The JSON of a line. @throws HeraldError malformed-json, or validation-failed if it is too deep or has too many values. */
export const lineJson = (text: string): unknown => parseJson(text, lineLimits.values);

const textReader =
  (ofText: (text: string) => unknown): ReadRow =>
  (text) => {
    const value = ofText(text);
    if (isObject(value)) return { row: value };
    return refuseLine("invalid-type", "must be a JSON object; a list of them must be written one per line");
  };

/** Reads lines of a file: rows of CSV, or objects of JSON. What `read` throws because of the line's own values refuses the line. */
export const createLineReader = <Read>(
  { header, ofCells, ofText = lineJson }: Options,
  read: (row: Row) => Read | RefusedLine,
): ((line: FileLine) => Read | RefusedLine) => {
  const readRow = header === undefined ? textReader(ofText) : csvReader(header, ofCells);
  return (line) => {
    if ("problem" in line) return unreadable[line.problem];
    if (line.text.includes("\0"))
      return refuseLine("invalid-format", "has NUL characters; is the file UTF-16? It must be UTF-8");
    try {
      const found = readRow(line.text);
      return "problems" in found ? found : read(found.row);
    } catch (error) {
      if (hasCode(error, "malformed-json"))
        return refuseLine("invalid-format", "is not JSON; each line must be one object");
      if (!hasCode(error, "validation-failed")) throw error;
      return refuseLine("invalid-value", error.faults.map(({ detail }) => detail).join("; "));
    }
  };
};
