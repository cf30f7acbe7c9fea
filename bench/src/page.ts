import { cpus, totalmem } from "node:os";
import { evaluateGoal, type Goal, goals } from "./goals.ts";
import { type Line, spread, type Table } from "./table.ts";
import type { Versions } from "./versions.ts";

export type Page = {
  readonly tables: readonly Table[];
  readonly runs: number;
  /** The arguments of `npm run bench`. */
  readonly args: readonly string[];
  readonly versions: Versions;
  readonly at: Date;
  /** The page as it was: what these tables do not have stays. */
  readonly earlier?: string;
};

const goalHeading = "## What the send path must reach";

/** The sections of a page by their headings. */
const sectionsOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split(/^(?=## )/m)
      .slice(1)
      .map((section) => [section.slice(0, section.indexOf("\n")), section.trimEnd()]),
  );

const isGoalRow = (line: string): boolean => /^\| (?!\||---)/.test(line);

const headingOf = ({ title }: Table): string => `## ${title[0]?.toUpperCase()}${title.slice(1)}`;

const partOfSystem = /^(gateway|registry|dispatch|analytics|nats|mongo|postgres|sink|load) (.+)$/;

/** The rows of a table. Lines of several processes share one row of medians: as rows of their own they would hide the others. */
const rowsOf = (lines: readonly Line[]): string[] => {
  const rows: { label: string; median: string; range: string; unit?: string }[] = [];
  for (const { label, values, digits } of lines) {
    const name = label.trim().replace(/ +/g, " ");
    const [min, median, max] = spread(values, digits);
    const [, part, unit] = partOfSystem.exec(name) ?? [];
    const last = rows.at(-1);
    if (unit === undefined) rows.push({ label: name, median, range: min === max ? "" : `${min}–${max}` });
    else if (last?.unit === unit) last.median += `, ${part} ${median}`;
    else rows.push({ label: `each process, ${unit}`, median: `${part} ${median}`, range: "", unit });
  }
  return rows.map(({ label, median, range }) => `| ${label} | ${median} | ${range} |`);
};

const section = (table: Table): string =>
  [headingOf(table), "", "| | median | range |", "| --- | ---: | ---: |", ...rowsOf(table.lines)].join("\n");

const goalRow = (goal: Goal, tables: readonly Table[]): string => {
  const { unit, digits = 0, atMost } = goal;
  const { reached, ratio, state } = evaluateGoal(goal, tables);
  const limit = (value: number) => `${atMost ? "≤" : "≥"} ${value} ${unit}`;
  const cells = [
    goal.work,
    limit(goal.threshold),
    limit(goal.goal),
    reached === undefined ? "" : `${reached.toFixed(digits)} ${unit}`,
    ratio === undefined ? "" : ratio.toFixed(2),
    state,
  ];
  return `| ${cells.join(" | ")} |`;
};

const goalTable = (tables: readonly Table[], earlier: readonly string[]): string =>
  [
    "| | threshold | goal | reached | ratio to the threshold | |",
    "| --- | ---: | ---: | ---: | ---: | --- |",
    ...goals.map((goal, index) => {
      const row = goalRow(goal, tables);
      const before = earlier[index];
      return row.endsWith("| not measured |") && before?.startsWith(`| ${goal.work} |`) ? before : row;
    }),
  ].join("\n");

/** docs/reference/performance.md. */
export const page = ({ tables, runs, args, versions, at, earlier = "" }: Page): string => {
  const before = sectionsOf(earlier);
  const goalRows = (before.get(goalHeading) ?? "").split("\n").filter(isGoalRow);
  const measured = new Set([goalHeading, ...tables.map(headingOf)]);
  const kept = [...before].flatMap(([heading, text]) => (measured.has(heading) ? [] : [text]));
  const command = ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" ");
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
  return `# Performance

Written by \`${command}\` on ${at.toISOString().slice(0, 10)}; each figure from ${runs} ${runs === 1 ? "run" : "runs"}. Figures of rows
that it did not run are from earlier runs.

| | |
| --- | --- |
| machine | ${machine} |
| broker | ${versions.broker} |
| database | ${versions.database} |
| runtime | Node ${process.version} |

Services, broker, database, load and fake providers share these cores. Herald's figures include the audience, the ledger of every device,
open tokens, statistics and streams that are synced to disk; a run counts only when every device got its push once. Each table has a
*floor*, measured in the same run: for broadcasts \`node:http2\` alone, for single sends bare express, a schema, one synced publish for
the sends of the same moment, and \`node:http2\`. The *peer* is another sender on the same machine, with a fake provider of its own.
[What limits speed](../explanation/speed.md) shows where the time goes and what was tried.

${goalHeading}

Medians. Below a ratio of 1 the threshold is not reached.

${goalTable(tables, goalRows)}

![Single sends before and after: sends a second and CPU of a send](performance.svg)

The two grey figures of CPU are older runs that left PostgreSQL and the load out.

${[...tables.map(section), ...kept].join("\n\n")}
`;
};
