import { machine } from "../harness/reliability-page.ts";
import { type Findings, NotHere, type Row } from "./row.ts";
import { seconds } from "./trial.ts";

export type Outcome = {
  readonly row: Row;
  readonly tookMs: number;
  readonly findings?: Findings;
  readonly error?: Error;
};

export type Verdict = "passed" | "failed" | "not here";

export const verdictOf = ({ findings, error }: Outcome): Verdict => {
  if (error instanceof NotHere) return "not here";
  if (!findings) return "failed";
  const { lost, repeated, problems, sent, final } = findings;
  return lost === 0 && repeated.unmarked === 0 && problems.length === 0 && sent === final ? "passed" : "failed";
};

const head = ["row", "sent", "final", "lost", "repeated (marked / unmarked)", "recovery", "verdict"];

const cells = (outcome: Outcome): string[] => {
  const { row, findings } = outcome;
  if (!findings) return [row.name, "", "", "", "", "", verdictOf(outcome)];
  const { sent, final, lost, repeated, recoveryMs } = findings;
  const recovery = recoveryMs === undefined ? "" : seconds(recoveryMs);
  const both = `${repeated.marked} / ${repeated.unmarked}`;
  return [row.name, String(sent), String(final), String(lost), both, recovery, verdictOf(outcome)];
};

/** For the screen, in columns. */
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

/** What is wrong with a row, and what it noted. */
export const remarks = ({ row, findings, error }: Outcome): string[] => [
  ...(error ? [`${row.name}: ${error.message}`] : []),
  ...(findings?.problems ?? []).map((line) => `${row.name}: ${line}`),
];

/** docs/reliability.md. */
export function page(outcomes: readonly Outcome[], command: string, at: Date): string {
  const table = (lines: readonly (readonly string[])[]) => lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
  const rule = (columns: readonly string[]) => columns.map(() => "---");
  const words = ["row", "fault", "what must be so, beside nothing lost and nothing twice without a mark"];
  const noted = outcomes.flatMap((one) => [
    ...remarks(one).map((line) => `- **${line}**`),
    ...(one.findings?.notes ?? []).map((line) => `- ${one.row.name}: ${line}`),
  ]);
  return `# Reliability

Written by \`${command}\` on ${at.toISOString().slice(0, 10)}, on ${machine()}.
Services, broker, database and simulators are processes of their own, and every row runs under load: broadcasts to three platforms,
ten single sends a second, opens. A delivery is one device of one notification. *Lost*: accepted, and without a final state 60 s
after recovery, or after the last repeat or ack wait that the row must wait for. *Repeated*: accepted twice by the provider; each must be
marked as possible. *Recovery*: from the end of the fault until a new send has reached its provider, the longest of the row.

${table([head, rule(head), ...outcomes.map(cells)])}

## What each row does

${table([words, rule(words), ...outcomes.map(({ row }) => [`\`${row.name}\``, row.fault, row.pass])])}

## What was noted

${noted.join("\n")}
`;
}
