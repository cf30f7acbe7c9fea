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

/** Formats rows as a table. Later pages reuse the widths of the first, without titles. */
export const createTable = <Row>(columns: readonly Column<Row>[], { width, paint }: Terminal) => {
  let widths: number[] | undefined;
  const line = (texts: readonly string[], by: readonly number[]): string =>
    by
      .map((columnWidth, at) => pad(cut(texts[at] ?? "", columnWidth), columnWidth, columns[at]?.right))
      .join(gap)
      .trimEnd();
  return (rows: readonly Row[]): string[] => {
    const texts = rows.map((row) => columns.map(({ value }) => show(value(row))));
    const titles = columns.map(({ title }) => title);
    if (widths !== undefined) {
      const known = widths;
      return texts.map((row) => line(row, known));
    }
    const natural = columns.map((_, at) => Math.max(...[titles, ...texts].map((row) => columnsOf(row[at] ?? ""))));
    // Ids, numbers and column titles are never truncated.
    const least = columns.map(({ title, right }, at) =>
      at === 0 || right ? (natural[at] ?? 0) : Math.min(natural[at] ?? 0, Math.max(minWidth, columnsOf(title))),
    );
    const fitting = fitted(natural, least, width);
    widths = fitting;
    return [paint("bold", line(titles, fitting)), ...texts.map((row) => line(row, fitting))];
  };
};

/** Formats names and values, one per line. Undefined values are left out. */
export const fields = (entries: readonly (readonly [string, unknown])[], { paint }: Terminal): string => {
  const given = entries.filter(([, value]) => value !== undefined);
  const nameWidth = Math.max(...given.map(([name]) => columnsOf(name)));
  return given.map(([name, value]) => `${paint("dim", pad(plain(name), nameWidth))}${gap}${show(value)}`).join("\n");
};
