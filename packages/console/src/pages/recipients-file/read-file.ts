import { isJsonObject, objectOf } from "../../parts/json.ts";

/** A recipient of a file: its target, and its values as they are written. */
export type FileRecipient = {
  readonly target: string;
  readonly variables: Readonly<Record<string, string | number | boolean>>;
};

/** Enough for the header and some lines: Herald accepts no longer ones. */
const headBytes = 131_072;

const isCsvName = (name: string): boolean => /\.csv(\.gz)?$/i.test(name);

/** The Content-Type of a file of recipients. */
export const uploadTypeOf = ({ name }: File): string => (isCsvName(name) ? "text/csv" : "application/x-ndjson");

/** The beginning of a file as text, decompressed. The rest is not read. */
const headOf = async (file: File): Promise<string> => {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isGzip = first === 0x1f && second === 0x8b;
  const stream = isGzip ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < headBytes) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value, { stream: true });
    }
    return text;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
};

/** The first rows of a CSV text. Quoted cells may contain delimiters and line breaks. */
const firstRows = (text: string, delimiter: string, limit: number): string[][] => {
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"|([^${delimiter}\\r\\n]*))(${delimiter}|\\r?\\n|$)`, "y");
  const rows: string[][] = [];
  let row: string[] = [];
  for (let found = cell.exec(text); found && rows.length < limit; found = cell.exec(text)) {
    const [, quoted, plain = "", end] = found;
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === delimiter) continue;
    if (row.some((value) => value.trim() !== "")) rows.push(row);
    row = [];
    if (cell.lastIndex >= text.length) break;
  }
  return rows;
};

const needsHeader = "The first row must name the columns: target, and the variables.";

const ofCsv = (text: string): Record<string, unknown> | string => {
  const [header = ""] = text.split(/\r?\n/, 1);
  const count = (delimiter: string) => header.split(delimiter).length;
  const delimiter = [",", ";", "\t"].reduce((best, one) => (count(one) > count(best) ? one : best));
  const [names = [], cells] = firstRows(text, delimiter, 2);
  const columns = names.map((name) => name.trim());
  if (!columns.includes("target")) return needsHeader;
  if (cells === undefined) return "The file has a header and no recipients.";
  const values = columns.map((name, at) => [name, cells[at] ?? ""] as const);
  return {
    target: values.find(([name]) => name === "target")?.[1],
    variables: Object.fromEntries(values.filter(([name]) => name !== "target")),
  };
};

const ofJson = (text: string): Record<string, unknown> | string => {
  const [line = ""] = text.split(/\r?\n/).filter((one) => one.trim() !== "");
  return (
    objectOf(line) ??
    'The first line is no JSON object, such as {"target":"user:u_17","variables":{"amount":12}}. Name a CSV file “….csv”.'
  );
};

/** The first recipient of a file, or what is wrong with the file. Reads only the file's beginning. */
export const readFirstRecipient = async (file: File): Promise<FileRecipient | string> => {
  const text = (await headOf(file)).replace(/^\uFEFF/, "");
  if (text.trim() === "") return "The file is empty.";
  if (text.includes("\0")) return "The file is not text in UTF-8. Save it as CSV in UTF-8.";
  const row = isCsvName(file.name) ? ofCsv(text) : ofJson(text);
  if (typeof row === "string") return row;
  const { target, variables = {} } = row;
  if (typeof target !== "string" || !/^(user|device|token):./.test(target))
    return `The first recipient, “${String(target ?? "")}”, must be written as user:<id>, device:<id> or token:<push token>.`;
  return { target, variables: isJsonObject(variables) ? (variables as FileRecipient["variables"]) : {} };
};
