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

const [name = "", ...figures] = head;
const pageHead = [name, "form", ...figures];

/** docs/reliability.md: the results of this run in the order of `rows`. Rows that did not run keep their previous results. */
export function page({ outcomes, long, command, at }: Run, rows: readonly Row[], before: string): string {
  const table = (lines: readonly (readonly string[])[]) => lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
  const rule = (columns: readonly string[]) => columns.map(() => "---");
  const words = ["row", "fault", "what must be so, beside nothing lost and nothing twice without a mark"];
  const found = new Map(outcomes.map((one) => [one.row.name, one]));
  const lines = before.split("\n");

  const tabled = rows.flatMap((row) => {
    const outcome = found.get(row.name);
    if (outcome) {
      const [, ...figuresOf] = cells(outcome);
      return [[row.name, long ? "long" : "short", ...figuresOf]];
    }
    const old = lines.find((line) => line.startsWith(`| ${row.name} |`));
    return old === undefined
      ? []
      : [
          old
            .split("|")
            .slice(1, -1)
            .map((cell) => cell.trim()),
        ];
  });
  const noted = rows.flatMap((row) => {
    const outcome = found.get(row.name);
    if (!outcome)
      return lines.filter((line) => line.startsWith(`- ${row.name}: `) || line.startsWith(`- **${row.name}: `));
    return [
      ...remarks(outcome).map((line) => `- **${line}**`),
      ...(outcome.findings?.notes ?? []).map((line) => `- ${row.name}: ${line}`),
    ];
  });
  return `# Reliability

Last written by \`${command}\` on ${at.toISOString().slice(0, 10)}, on ${machine()}; rows that it did not run are as they were.
Services, broker, database and simulators are processes of their own, and every row runs under load: broadcasts to three platforms,
ten single sends a second, opens. A delivery is one device of one notification. *Lost*: accepted, and without a final state 60 s
after recovery, or after the last repeat or ack wait that the row must wait for. *Repeated*: accepted twice by the provider; each must be
marked as possible. *Recovery*: from the end of the fault until a new send has reached its provider, the longest of the row.
*Form*: the long one takes minutes for a row (\`--long\`), the short one seconds.

${table([pageHead, rule(pageHead), ...tabled])}

## What each row does

${table([words, rule(words), ...rows.map(({ name: called, fault, pass }) => [`\`${called}\``, fault, pass])])}

## What was noted

${noted.join("\n")}
`;
}
