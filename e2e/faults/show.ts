import { machine } from "../harness/reliability-page.ts";
import { type Findings, NotHere, type Row } from "./row.ts";
import { seconds } from "./trial.ts";

export type Outcome = {
  readonly row: Row;
  readonly tookMs: number;
  readonly findings?: Findings;
  readonly error?: Error;
};

export type RowResult = "passed" | "failed" | "not here";

export const resultOf = ({ findings, error }: Outcome): RowResult => {
  if (error instanceof NotHere) return "not here";
  if (!findings) return "failed";
  const { lost, repeated, problems, sent, final } = findings;
  return lost === 0 && repeated.unmarked === 0 && problems.length === 0 && sent === final ? "passed" : "failed";
};

const head = ["row", "sent", "final", "lost", "repeated (marked / unmarked)", "recovery", "result"];

const cells = (outcome: Outcome): string[] => {
  const { row, findings } = outcome;
  if (!findings) return [row.name, "", "", "", "", "", resultOf(outcome)];
  const { sent, final, lost, repeated, recoveryMs } = findings;
  const recovery = recoveryMs === undefined ? "" : seconds(recoveryMs);
  const both = `${repeated.marked} / ${repeated.unmarked}`;
  return [row.name, String(sent), String(final), String(lost), both, recovery, resultOf(outcome)];
};

/** The table for a terminal, in columns. */
export function screenTable(outcomes: readonly Outcome[]): string {
  const lines = [head, ...outcomes.map(cells)];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The problems and notes of a row. */
export const remarks = ({ row, findings, error }: Outcome): string[] => [
  ...(error ? [`${row.name}: ${error.message}${error.cause ? ` (${error.cause})` : ""}`] : []),
  ...(findings?.problems ?? []).map((line) => `${row.name}: ${line}`),
];

export type Run = {
  readonly outcomes: readonly Outcome[];
  /** Minutes for a row instead of seconds. */
  readonly long: boolean;
  readonly command: string;
  readonly at: Date;
};

const pageHead = ["row", "fault", "passes if", "recovery"];
/** The cell that a run measures; the others say what the row is. */
const measuredCell = (outcome: Outcome, long: boolean): string => {
  const { findings } = outcome;
  const why = [
    ...(findings && findings.lost > 0 ? [`${findings.lost} lost`] : []),
    ...(findings && findings.repeated.unmarked > 0 ? [`${findings.repeated.unmarked} repeated without a mark`] : []),
    ...remarks(outcome),
  ];
  const shown = {
    passed: findings?.recoveryMs === undefined ? "passed" : seconds(findings.recoveryMs),
    failed: `failed: ${why.join("; ").replaceAll("|", "/")}`,
    "not here": "not here",
  } satisfies Record<RowResult, string>;
  return `${shown[resultOf(outcome)]}${long ? ", long" : ""}`;
};

/** The faults of docs/reference/reliability.md: this run in the order of `rows`. Rows that did not run keep their results. */
export function page({ outcomes, long, command, at }: Run, rows: readonly Row[], before: string): string {
  const found = new Map(outcomes.map((one) => [one.row.name, one]));
  const earlier = new Map(
    before.split("\n").map((line) => {
      const cells = line.split("|").map((cell) => cell.trim());
      return [cells[1], cells.at(-2)];
    }),
  );
  const lines = rows.flatMap((row) => {
    const outcome = found.get(row.name);
    const result = outcome ? measuredCell(outcome, long) : earlier.get(row.name);
    return result === undefined ? [] : [{ ...row, result }];
  });
  const cellsOf = ({ name, fault, pass, result }: (typeof lines)[number], at: number) => [
    name,
    fault,
    pass === lines[at - 1]?.pass ? "as above" : pass,
    result,
  ];
  const table = [pageHead, pageHead.map(() => "---"), ...lines.map(cellsOf)]
    .map((line) => `| ${line.join(" | ")} |`)
    .join("\n");
  return `# Reliability

Which faults and attacks Herald is tested against, and what must hold in each. [Exactness](../explanation/exactness.md) says why it does.

## Faults

Last written by \`${command}\` on ${at.toISOString().slice(0, 10)}, on ${machine()}; rows that it did not run are as they were.
Each row runs under load, with every program in a process of its own. A row passes if, in addition, each device of each accepted notification had
a final state 60 s after the recovery, or after the last retry that the row waits for, and each repeat was marked. *No repeat*: not even a
marked one. *Recovery*: from the end of the fault until a new send reaches its provider; a row that did not pass says so there. Results are of
the short form unless they say *long*; a slow machine gets longer limits.

${table}
`;
}
