import type { Terminal } from "./terminal.ts";
import { columnsOf, cut, pad, plain, show } from "./text.ts";

export type Column<Row> = {
  readonly title: string;
  readonly value: (row: Row) => unknown;
  /** Numbers stand to the right. */
  readonly right?: boolean;
};

const gap = "  ";
/** Below this a column says nothing any more, and is left out. */
const minWidth = 6;

const sum = (widths: readonly number[]): number =>
  widths.reduce((total, width) => total + width, 0) + gap.length * Math.max(0, widths.length - 1);

/** Narrows the widest columns until all fit; leaves out the last ones where that is not enough. The first, an id, stays whole. */
const fitted = (natural: readonly number[], width: number): number[] => {
  const widths = [...natural];
  while (widths.length > 1 && sum([widths[0] ?? 0, ...widths.slice(1).map((one) => Math.min(one, minWidth))]) > width)
    widths.pop();
  while (sum(widths) > width) {
    const others = widths.slice(1);
    const widest = Math.max(...others);
    if (others.length === 0 || widest <= minWidth) break;
    widths[others.indexOf(widest) + 1] = widest - 1;
  }
  return widths;
};

/** Lays rows out under their titles. Later pages take the widths of the first. */
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
    const fitting = fitted(natural, width);
    widths = fitting;
    return [paint("bold", line(titles, fitting)), ...texts.map((row) => line(row, fitting))];
  };
};

/** Names and values under each other. */
export const fields = (entries: readonly (readonly [string, unknown])[], { paint }: Terminal): string => {
  const given = entries.filter(([, value]) => value !== undefined);
  const nameWidth = Math.max(...given.map(([name]) => columnsOf(name)));
  return given.map(([name, value]) => `${paint("dim", pad(plain(name), nameWidth))}${gap}${show(value)}`).join("\n");
};
