import { formatNumber, pad } from "./text.ts";

const blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const steps = blocks.length - 1;
const maxWidth = 100;

/** Sums neighbours until there are at most `width` values. */
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
  /** Labels of the first and the last column. */
  readonly ends: readonly [string, string];
};

/** A column chart with the largest value as its axis label, at most `width` columns wide. */
export const plot = (values: readonly number[], { width, height, ends: [from, to] }: PlotOptions): string[] => {
  const room = Math.min(width, maxWidth);
  // Sums have more formatNumber, so the label is wider. Half the room is the worst case.
  const sideWidth = formatNumber(Math.max(...squeeze(values, Math.ceil(room / 2)))).length + 1;
  const columns = squeeze(values, room - sideWidth);
  const most = Math.max(...columns);
  const rows = Array.from({ length: height }, (_, row) => {
    const floor = (height - 1 - row) * steps;
    const cells = columns.map((value) => {
      const filled = Math.ceil((value / (most || 1)) * height * steps) - floor;
      return blocks[Math.max(0, Math.min(steps, filled))] ?? "";
    });
    return `${pad(row === 0 ? formatNumber(most) : "", sideWidth - 1, true)} ${cells.join("")}`.trimEnd();
  });
  const between = Math.max(1, columns.length - from.length - to.length);
  const axis = `${" ".repeat(sideWidth)}${from}${" ".repeat(between)}${to}`;
  return [...rows, axis.length <= room ? axis : `${" ".repeat(sideWidth)}${from}`.slice(0, room)];
};
