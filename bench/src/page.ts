import { cpus, totalmem } from "node:os";
import { evaluateGoal, type Goal, goals } from "./goals.ts";
import { type Figure, figureIn, type Line, spread, type Table } from "./table.ts";
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

/** The cells of a table on the page, by row and column. */
type Rows = Map<string, Map<string, string>>;

const summaryHeading = "# Performance";
const goalHeading = "## Goals";
const onlyColumn = "median";

/** What Herald does, in five figures. */
const summary: readonly { readonly work: string; readonly figure: Figure; readonly unit: string }[] = [
  { work: "sends to one device each, pushed", figure: "direct", unit: "/s" },
  { work: "the same, 100 a request", figure: "batch", unit: "/s" },
  { work: "one send to a large topic, pushed", figure: "broadcast", unit: "/s" },
  { work: "POST to push at rest, p50", figure: "latency-p50", unit: "ms" },
  { work: "devices that register", figure: "registrations", unit: "/s" },
];

/** The text under each heading. */
const sectionsOf = (text: string): ReadonlyMap<string, string> =>
  new Map(text.split(/^(?=#+ )/m).map((section) => [section.slice(0, section.indexOf("\n")), section]));

const rowsIn = (section = ""): Rows => {
  const [columns = [], , ...rows] = section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return new Map(
    rows.map(([name = "", ...cells]) => [name, new Map(cells.map((cell, at) => [columns[at + 1] ?? "", cell]))]),
  );
};

const rowOf = (cells: readonly string[]): string => `|${cells.join("|")}|`;

const textOf = (rows: Rows): string => {
  const columns = [...new Set([...rows.values()].flatMap((cells) => [...cells.keys()]))];
  return [
    rowOf(["", ...columns]),
    rowOf(["---", ...columns.map(() => "---:")]),
    ...[...rows].map(([name, cells]) => rowOf([name, ...columns.map((column) => cells.get(column) ?? "")])),
  ].join("\n");
};

/** `Part: row` is one row of the table of its part; any other title has a table of its own. */
const placeOf = ({ title }: Table): { readonly heading: string; readonly row?: string } => {
  const [part = "", row] = title.split(": ");
  const heading = `## ${part[0]?.toUpperCase()}${part.slice(1)}`;
  return row === undefined ? { heading } : { heading, row };
};

/** In the order of the numbers in one cell. */
const processes = ["gateway", "registry", "dispatch", "analytics", "nats", "mongo", "postgres", "sink", "load"];
const lineOfProcess = new RegExp(`^(${processes.join("|")}) (.+)$`);

const medianOf = ({ values, digits }: Line): string => spread(values, digits)[1];

const withRange = (line: Line): string => {
  const [min, median, max] = spread(line.values, line.digits);
  return min === max ? median : `${median} (${min}–${max})`;
};

/** The cells of a table. The processes share a cell: a row or column for each would hide the others. */
const cellsOf = (table: Table): Rows => {
  const rows: Rows = new Map();
  const put = (label: string, cellAt: (column: number) => string): void => {
    const [first = "", second] = label.split(": ");
    const { row = second === undefined ? label : first } = placeOf(table);
    const column = second ?? (placeOf(table).row === undefined ? onlyColumn : label);
    const cells = rows.get(row) ?? new Map<string, string>();
    rows.set(row, cells.set(column, cellAt(cells.size)));
  };
  const ofProcesses = new Map<string, Map<string, string>>();
  for (const line of table.lines) {
    const label = line.label.trim().replace(/ +/g, " ");
    const [, process = "", unit] = lineOfProcess.exec(label) ?? [];
    if (unit === undefined) {
      put(label, (column) => (column === 0 ? withRange(line) : medianOf(line)));
      continue;
    }
    const medians = ofProcesses.get(unit) ?? new Map<string, string>();
    ofProcesses.set(unit, medians.set(process, medianOf(line)));
    const last = processes.findLastIndex((name) => medians.has(name));
    const shown = processes.slice(0, last + 1).map((name) => medians.get(name) ?? "–");
    put(`each process, ${unit}`, () => shown.join("/"));
  }
  return rows;
};

/** The tables by heading: those of the earlier page with these ones in their place. */
const partsOf = (tables: readonly Table[], before: ReadonlyMap<string, string>): ReadonlyMap<string, Rows> => {
  const kept = [...before].filter(([heading]) => heading.startsWith("## ") && heading !== goalHeading);
  const parts = new Map(kept.map(([heading, section]) => [heading, rowsIn(section)]));
  for (const table of tables) {
    const { heading, row } = placeOf(table);
    const rows = row === undefined ? new Map() : (parts.get(heading) ?? new Map());
    for (const [name, cells] of cellsOf(table)) rows.set(name, cells);
    parts.set(heading, rows);
  }
  return parts;
};

const summaryRows = (tables: readonly Table[], before: Rows): Rows =>
  new Map(
    summary.map(({ work, figure, unit }) => {
      const value = figureIn(tables)(figure);
      const now = new Map([[onlyColumn, value === undefined ? "" : `${value.toFixed(0)} ${unit}`]]);
      return [work, value === undefined ? (before.get(work) ?? now) : now];
    }),
  );

const nameOf = ({ work, unit }: Goal): string => `${work}, ${unit}`;

const goalCells = (goal: Goal, tables: readonly Table[]): Map<string, string> => {
  const { reached, state } = evaluateGoal(goal, tables);
  return new Map([
    ["threshold", `${goal.atMost ? "≤" : "≥"} ${goal.threshold}`],
    ["goal", String(goal.goal)],
    ["reached", reached?.toFixed(goal.digits) ?? ""],
    ["result", state],
  ]);
};

const goalRows = (tables: readonly Table[], before: Rows): Rows =>
  new Map(
    goals.map((goal) => {
      const now = goalCells(goal, tables);
      return [nameOf(goal), now.get("reached") === "" ? (before.get(nameOf(goal)) ?? now) : now];
    }),
  );

/** docs/reference/performance.md. */
export const page = ({ tables, runs, args, versions, at, earlier = "" }: Page): string => {
  const before = sectionsOf(earlier);
  const command = ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" ");
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
  return `${summaryHeading}

On ${machine}, which services, broker, database, load and fake providers share:

${textOf(summaryRows(tables, rowsIn(before.get(summaryHeading))))}

Written by \`${command}\` on ${at.toISOString().slice(0, 10)}: medians of ${runs} ${runs === 1 ? "run" : "runs"}, the first of a row
with minimum and maximum in brackets. Rows that it did not run are from earlier runs. With ${versions.broker}, ${versions.database} and Node ${process.version}.

A run counts only when every device got its push once. The figures include the audience, the ledger of every device, open tokens,
statistics and streams that are synced to disk. *Floor*: in the same run, \`node:http2\` alone for broadcasts; for single sends bare express, a
schema, one synced publish for the sends of the same moment, and \`node:http2\`. *Peer*: another sender, with a fake provider of its own.
*Plain*: the same without what the row adds. *Each process*: ${processes.join("/")}; sink is the fake provider.
[What limits speed](../explanation/speed.md) shows where the time goes.

${[...partsOf(tables, before)].map(([heading, rows]) => `${heading}\n\n${textOf(rows)}`).join("\n\n")}

${goalHeading}

${textOf(goalRows(tables, rowsIn(before.get(goalHeading))))}

![Single sends before and after: sends a second and CPU of a send](performance.svg)

The two grey figures of CPU are older runs that left PostgreSQL and the load out.
`;
};
