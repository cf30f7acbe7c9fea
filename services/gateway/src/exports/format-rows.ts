import { type ExportFormat, toCsvText } from "@herald/contracts";
import type { z } from "zod";

/** How rows become text. */
export type RowFormat = {
  readonly contentType: string;
  /** Before the first row of an export; not sent again when it is resumed. */
  readonly head: string;
  /** One row, given as JSON, with its line end. */
  readonly line: (row: string) => string;
};

const ndjson: RowFormat = {
  contentType: "application/x-ndjson; charset=utf-8",
  head: "",
  line: (row) => `${row}\n`,
};

const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** Most cells have nothing that a CSV or a spreadsheet would read as more than text. */
const plain = /^[A-Za-z0-9](?:[^",\r\n]*)$/;

/** A cell of RFC 4180. Lists and objects are JSON. */
const cell = (value: unknown): string => {
  const own = textOf(value);
  if (own === "" || plain.test(own)) return own;
  const text = toCsvText(own);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** One column for each field of the rows' schema. */
const csv = (row: z.ZodObject): RowFormat => {
  const columns = Object.keys(row.shape);
  return {
    contentType: "text/csv; charset=utf-8",
    head: `${columns.join(",")}\r\n`,
    line: (row) => {
      const values = JSON.parse(row) as Record<string, unknown>;
      return `${columns.map((name) => cell(values[name])).join(",")}\r\n`;
    },
  };
};

export const rowFormat = (format: ExportFormat, row: z.ZodObject): RowFormat => (format === "csv" ? csv(row) : ndjson);

/** The quality of a name in a header such as `Accept`; 0 if it is absent or refused. */
const qualityOf = (header: string, name: string): number => {
  for (const part of header.split(",")) {
    const [value = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    if (value !== name) continue;
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0;
  }
  return 0;
};

/** The format that the client prefers; NDJSON unless it asks for CSV. */
export const preferredFormat = (accept = ""): ExportFormat =>
  qualityOf(accept, "text/csv") > qualityOf(accept, "application/x-ndjson") ? "csv" : "ndjson";

export const acceptsGzip = (acceptEncoding = ""): boolean => qualityOf(acceptEncoding, "gzip") > 0;
