import { cpus, totalmem } from "node:os";
import { type Goal, goals, judge } from "./goals.ts";
import { spread, type Table } from "./table.ts";
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

const section = (table: Table): string =>
  [
    headingOf(table),
    "",
    "| | minimum | median | maximum |",
    "| --- | ---: | ---: | ---: |",
    ...table.lines.map(
      ({ label, values, digits }) => `| ${[label.trim().replace(/ +/g, " "), ...spread(values, digits)].join(" | ")} |`,
    ),
  ].join("\n");

const goalRow = (goal: Goal, tables: readonly Table[]): string => {
  const { unit, digits = 0, atMost } = goal;
  const { reached, ratio, state } = judge(goal, tables);
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

/** docs/performance.md. */
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

Services, broker, database, load and fake providers share these cores, so speed is theirs together; CPU is counted for each process.
Herald's figures include the audience, the ledger of every device, open tokens, statistics and streams that are synced to disk, and a
run counts only when every device got its push once. Two floors stand beside them in the same run: for broadcasts \`node:http2\` alone,
which sends the same requests (for Web Push it encrypts them); for single sends bare express, the body's schema, one synced publish for
the sends of the same moment, and \`node:http2\`. The peer is another sender on the same machine, with a fake provider of its own.

${goalHeading}

Below a ratio of 1 the threshold is not reached. Medians.

${goalTable(tables, goalRows)}

![Single sends before and after: sends a second and CPU of a send](performance.svg)

The two grey figures of CPU are older runs that left PostgreSQL and the load out. Where the time goes and what was tried:
[what limits speed](what-limits-speed.md).

${[...tables.map(section), ...kept].join("\n\n")}
`;
};
