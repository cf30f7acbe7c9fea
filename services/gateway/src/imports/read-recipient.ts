import {
  cutText,
  type DeclaredVariables,
  fromCsvText,
  importLimits,
  isObject,
  isPlainVariables,
  type PersonalTexts,
  parseRecipient,
  type RecipientError,
  type RecipientKind,
  Variables,
  type VariableValue,
  variableProblem,
} from "@herald/contracts";
import { csvDelimiter, csvRow, describeIssues, hasCode, parseJson } from "@herald/kit";
import type { FileLine } from "./read-upload.ts";

export type RecipientOfLine = { readonly key: string; readonly values: Record<string, VariableValue> };
type Problem = Omit<RecipientError, "line">;
type Read = RecipientOfLine | { readonly problems: readonly Problem[] };

const problem = (field: string, reason: string, code = "invalid-value"): Problem => ({ field, reason, code });
const refused = (...problems: Problem[]) => ({ problems });

/** Problems of a line that are kept. */
const maxProblems = 5;

const lineProblems = {
  "too-long": problem("", `is longer than ${importLimits.lineBytes} bytes`, "too-long"),
  "not-utf8": problem("", "is not UTF-8", "invalid-format"),
} as const;

/** A cell of CSV as its variable's type; a text that does not fit stays, and is refused later. */
const ofType = (text: string, type: string | undefined): VariableValue => {
  if (type === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
};

/** A row of CSV: the column `target`, and one for each variable. An empty cell gives no value. */
const csvReader = (header: string, declared: DeclaredVariables | undefined) => {
  const delimiter = csvDelimiter(header);
  const names = csvRow(header, importLimits.columns, delimiter);
  const columns = typeof names === "string" ? undefined : names.map((name) => fromCsvText(name.trim()));
  return (text: string): { row: Record<string, unknown> } | { problems: readonly Problem[] } => {
    const cells = csvRow(text, importLimits.columns, delimiter);
    if (columns === undefined || typeof cells === "string")
      return refused(problem("", "is not CSV: check its quotes", "invalid-format"));
    if (cells.length !== columns.length)
      return refused(problem("", `has ${cells.length} cells where the header has ${columns.length}`, "invalid-format"));
    let target: string | undefined;
    const variables: [string, VariableValue][] = [];
    for (const [at, name] of columns.entries()) {
      const cell = fromCsvText(cells[at] ?? "");
      if (name === "target") target = cell;
      else if (cell !== "") variables.push([name, ofType(cell, declared?.[name]?.type)]);
    }
    return { row: { target, variables: Object.fromEntries(variables) } };
  };
};

const jsonRow = (text: string): { row: Record<string, unknown> } | { problems: readonly Problem[] } => {
  try {
    const row = parseJson(text, importLimits.values);
    return isObject(row) ? { row } : refused(problem("", "must be a JSON object", "invalid-type"));
  } catch (error) {
    if (!hasCode(error, "malformed-json", "validation-failed")) throw error;
    return refused(problem("", "is not JSON; each line must be one object", "invalid-format"));
  }
};

type Options = {
  readonly kind: RecipientKind;
  readonly texts: Pick<PersonalTexts, "values" | "declared">;
  /** The header of a CSV file. */
  readonly header: string | undefined;
};

/** Reads lines of a file as recipients with valid values. */
export const createReadRecipient = ({ kind, texts, header }: Options): ((line: FileLine) => Read) => {
  const { declared, values: shared } = texts;
  const readRow = header === undefined ? jsonRow : csvReader(header, declared);
  const required = Object.keys(declared ?? {}).filter((name) => !Object.hasOwn(shared, name));
  const valueProblems = (values: Record<string, VariableValue>): Problem[] => {
    if (declared === undefined) return [];
    const wrong = Object.entries(values).flatMap(([name, value]) => {
      const variable = Object.hasOwn(declared, name) ? declared[name] : undefined;
      const words =
        variable === undefined ? "is not a variable of the template" : variableProblem(variable.type, value);
      return words === undefined ? [] : [problem(`variables.${name}`, words)];
    });
    const missing = required.filter((name) => !Object.hasOwn(values, name));
    return [...wrong, ...missing.map((name) => problem(`variables.${name}`, "is required by the template", "missing"))];
  };

  return (line) => {
    if ("problem" in line) return refused(lineProblems[line.problem]);
    const read = readRow(line.text);
    if ("problems" in read) return read;
    const { target, variables = {}, ...others } = read.row;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined)
      return refused(problem(cutText(unknown, 100), "is unknown: a line has `target` and `variables`"));
    if (typeof target !== "string") return refused(problem("target", "is required", "missing"));
    const parsed = parseRecipient(target);
    if ("problem" in parsed) return refused(problem("target", parsed.problem));
    if (parsed.kind !== kind) return refused(problem("target", `must be \`${kind}:\`, as the notification says`));
    const given = isPlainVariables(variables)
      ? { success: true as const, data: variables }
      : Variables.safeParse(variables);
    if (!given.success)
      return refused(
        ...describeIssues(given.error)
          .slice(0, maxProblems)
          .map((reason) => problem("variables", reason)),
      );
    const problems = valueProblems(given.data);
    return problems.length > 0 ? refused(...problems.slice(0, maxProblems)) : { key: parsed.key, values: given.data };
  };
};
