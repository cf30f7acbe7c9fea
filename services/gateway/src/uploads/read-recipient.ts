import {
  cutText,
  type DeclaredVariables,
  type EntryProblem,
  isPlainVariables,
  type PersonalTexts,
  parseRecipient,
  type RecipientKind,
  Variables,
  type VariableValue,
} from "@herald/contracts";
import { createLineReader, describeIssues, type FileLine, type RefusedLine, refuseLine } from "@herald/kit";
import { valuesOf } from "../sending/templates.ts";

export type RecipientOfLine = { readonly key: string; readonly values: Record<string, VariableValue> };

/** Problems of a line that are kept. */
const maxProblems = 5;

/** A cell of CSV as its variable's type; a text that does not fit stays, and is refused later. */
const ofType = (text: string, type: string | undefined): VariableValue => {
  if (type === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
};

/** A row of CSV: the column `target`, and one for each variable. An empty cell gives no value. */
const rowOf = (declared: DeclaredVariables | undefined) => (columns: readonly string[], cells: readonly string[]) => {
  let target: string | undefined;
  const variables: [string, VariableValue][] = [];
  for (const [at, name] of columns.entries()) {
    const cell = cells[at] ?? "";
    if (name === "target") target = cell;
    else if (cell !== "") variables.push([name, ofType(cell, declared?.[name]?.type)]);
  }
  return { target, variables: Object.fromEntries(variables) };
};

type Options = {
  readonly kind: RecipientKind;
  readonly texts: Pick<PersonalTexts, "values" | "declared">;
  /** The header of a CSV file. */
  readonly header: string | undefined;
};

/** Reads lines of a file as recipients with valid values. */
export const createReadRecipient = ({
  kind,
  texts,
  header,
}: Options): ((line: FileLine) => RecipientOfLine | RefusedLine) => {
  const { declared, values: shared } = texts;
  const isShared = (variable: string) => Object.hasOwn(shared, variable);
  const valueProblems = (values: Record<string, VariableValue>): EntryProblem[] =>
    declared === undefined
      ? []
      : valuesOf(declared, values, isShared).problems.map((one) => ({ ...one, field: `variables.${one.field}` }));

  return createLineReader({ header, ofCells: rowOf(declared) }, ({ target, variables = {}, ...others }) => {
    const [unknown] = Object.keys(others);
    if (unknown !== undefined)
      return refuseLine("invalid-value", "is unknown: a line has `target` and `variables`", cutText(unknown, 100));
    if (typeof target !== "string") return refuseLine("missing", "is required", "target");
    const parsed = parseRecipient(target);
    if ("problem" in parsed) return refuseLine("invalid-value", parsed.problem, "target");
    if (parsed.kind !== kind)
      return refuseLine("invalid-value", `must be \`${kind}:\`, as the notification says`, "target");
    const given = isPlainVariables(variables)
      ? { success: true as const, data: variables }
      : Variables.safeParse(variables);
    const problems = given.success
      ? valueProblems(given.data)
      : describeIssues(given.error).map((detail) => ({ field: "variables", detail, code: "invalid-value" }));
    if (problems.length > 0 || !given.success) return { problems: problems.slice(0, maxProblems) };
    return { key: parsed.key, values: given.data };
  });
};
