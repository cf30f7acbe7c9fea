import { count, pad } from "./text.ts";

const blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const steps = blocks.length - 1;
const maxWidth = 100;

/** At most so many values: neighbours are added up. */
const squeeze = (values: readonly number[], width: number): number[] => {
  const each = Math.ceil(values.length / width);
  const columns = Math.ceil(values.length / each);
  return Array.from({ length: columns }, (_, column) =>
    values.slice(column * each, (column + 1) * each).reduce((sum, value) => sum + value, 0),
  );
};

type PlotOptions = {
  readonly width: number;
  readonly height: number;
  /** Under the first and the last column. */
  readonly ends: readonly [string, string];
};

/** Columns over time, with the largest value at their side: lines of at most `width` columns. */
export const plot = (values: readonly number[], { width, height, ends: [from, to] }: PlotOptions): string[] => {
  const room = Math.min(width, maxWidth);
  // As many neighbours as are added up, so wide may the number beside them be.
  const sideWidth = count(Math.max(...squeeze(values, Math.ceil(room / 2)))).length + 1;
  const columns = squeeze(values, room - sideWidth);
  const most = Math.max(...columns);
  const rows = Array.from({ length: height }, (_, row) => {
    const floor = (height - 1 - row) * steps;
    const cells = columns.map((value) => {
      const filled = Math.ceil((value / (most || 1)) * height * steps) - floor;
      return blocks[Math.max(0, Math.min(steps, filled))] ?? "";
    });
    return `${pad(row === 0 ? count(most) : "", sideWidth - 1, true)} ${cells.join("")}`.trimEnd();
  });
  const between = Math.max(1, columns.length - from.length - to.length);
  const axis = `${" ".repeat(sideWidth)}${from}${" ".repeat(between)}${to}`;
  return [...rows, axis.length <= room ? axis : `${" ".repeat(sideWidth)}${from}`.slice(0, room)];
};
