import type { Terminal } from "./terminal.ts";
import { columnsOf, cut, pad, plain, show } from "./text.ts";

export type Column<Row> = {
  readonly title: string;
  readonly value: (row: Row) => unknown;
  /** Right-aligned, for numbers. */
  readonly right?: boolean;
};

const gap = "  ";
/** Narrower texts are unreadable. */
const minWidth = 6;

const sum = (widths: readonly number[]): number =>
  widths.reduce((total, width) => total + width, 0) + gap.length * Math.max(0, widths.length - 1);

/** Narrows the widest columns until all fit. If that is not enough, drops the last columns. */
const fitted = (natural: readonly number[], least: readonly number[], width: number): number[] => {
  let columns = natural.length;
  while (columns > 1 && sum(least.slice(0, columns)) > width) columns--;
  const widths = natural.slice(0, columns);
  while (sum(widths) > width) {
    const yielding = widths.flatMap((one, at) => (one > (least[at] ?? 0) ? [at] : []));
    const widest = yielding.reduce(
      (most, at) => ((widths[at] ?? 0) > (widths[most] ?? 0) ? at : most),
      yielding[0] ?? 0,
    );
    if (yielding.length === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
};

const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z$/;
const empty = show(undefined);

type Layout = {
  readonly widths: readonly number[];
  /** Cells of a row that stand on a line of their own, above the others. */
  readonly above: number;
};

/** On a narrow terminal, the first column stands above the others. */
const layoutOf = (natural: readonly number[], least: readonly number[], width: number): Layout => {
  const [first = 0, ...rest] = natural;
  if (sum(least) <= width || rest.length === 0) return { widths: fitted(natural, least, width), above: 0 };
  return { widths: [first, ...fitted(rest, least.slice(1), width - gap.length)], above: 1 };
};

/** Formats rows as a table. Later pages reuse the widths of the first, without titles. */
export const createTable = <Row>(columns: readonly Column<Row>[], { width, paint, isTerminal }: Terminal) => {
  let layout: Layout | undefined;
  const titles = columns.map(({ title }) => title);
  const line = (texts: readonly string[], widths: readonly number[], from: number, to?: number): string =>
    widths
      .slice(from, to)
      .map((columnWidth, at) => pad(cut(texts[from + at] ?? "", columnWidth), columnWidth, columns[from + at]?.right))
      .join(gap)
      .trimEnd();
  const linesOf = (texts: readonly string[], { widths, above }: Layout): string[] =>
    above === 0
      ? [line(texts, widths, 0)]
      : [line(texts, widths, 0, above), `${gap}${line(texts, widths, above)}`.trimEnd()];
  const cell = (value: unknown) => (isTerminal ? show(value).replace(time, "$1 $2Z") : show(value));
  return (rows: readonly Row[]): string[] => {
    const texts = rows.map((row) => columns.map(({ value }) => cell(value(row))));
    if (layout !== undefined) {
      const known = layout;
      return texts.flatMap((row) => linesOf(row, known));
    }
    const natural = columns.map((_, at) => Math.max(...[titles, ...texts].map((row) => columnsOf(row[at] ?? ""))));
    const isTime = (at: number) => texts.every((row) => /^[\d-]+ [\d:]+Z$/.test(row[at] ?? "") || row[at] === empty);
    // Ids, numbers, times and column titles are never truncated.
    const least = columns.map(({ title, right }, at) =>
      at === 0 || right || isTime(at)
        ? (natural[at] ?? 0)
        : Math.min(natural[at] ?? 0, Math.max(minWidth, columnsOf(title))),
    );
    const found = layoutOf(natural, least, width);
    layout = found;
    return [
      ...linesOf(titles, found).map((text) => text.replace(/\S.*/, (title) => paint("bold", title))),
      ...texts.flatMap((row) => linesOf(row, found)),
    ];
  };
};

/** Formats names and values, one per line. Undefined values are left out. */
export const fields = (entries: readonly (readonly [string, unknown])[], { paint }: Terminal): string => {
  const given = entries.filter(([, value]) => value !== undefined);
  const nameWidth = Math.max(...given.map(([name]) => columnsOf(name)));
  return given.map(([name, value]) => `${paint("dim", pad(plain(name), nameWidth))}${gap}${show(value)}`).join("\n");
};
