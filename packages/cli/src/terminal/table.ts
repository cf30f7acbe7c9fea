import type { Terminal } from "./terminal.ts";
import { columnsOf, cut, pad, plain, show } from "./text.ts";

export type TableColumn<Row> = {
  readonly title: string;
  readonly value: (row: Row) => unknown;
  /** Right-aligned; by default if all values of the first page are numbers. */
  readonly right?: boolean;
  /** Never truncated: people copy it. */
  readonly whole?: boolean;
};

const titleOf = (field: string): string => field.replace(/_(id|at)$/, "").replaceAll("_", " ");

/** A table's columns. A field's name stands for its value, under a title without `_id` or `_at`. */
export const columnsFor = <Row>(
  ...parts: readonly ((keyof Row & string) | TableColumn<Row>)[]
): readonly TableColumn<Row>[] =>
  parts.map((part) =>
    typeof part === "string" ? { title: titleOf(part).toUpperCase(), value: (row) => row[part] } : part,
  );

/** Fields with the same titles, for {@link fields}. */
export const titled = <Row>(row: Row, ...names: readonly (keyof Row & string)[]) =>
  names.map((name): [title: string, value: unknown] => [titleOf(name), row[name]]);

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

/** At a terminal times are shortened: to the minute, or to the date if space is short. */
const toMinute = (text: string): string => text.replace(time, "$1 $2Z");
const toDate = (text: string): string => text.replace(time, "$1");
const exact = (text: string): string => text;

type Layout = {
  readonly form: (text: string) => string;
  /** The first column stands on a line of its own, above the others. */
  readonly stacked: boolean;
  readonly widths: readonly number[];
  readonly right: readonly boolean[];
};

/** Formats rows as a table. Later pages reuse the widths of the first, without titles. */
export const createTable = <Row>(columns: readonly TableColumn<Row>[], { width, paint, isTerminal }: Terminal) => {
  const titles = columns.map(({ title }) => title);
  let layout: Layout | undefined;

  const layOut = (values: readonly (readonly unknown[])[]): Layout => {
    const texts = values.map((row) => row.map(show));
    const right = columns.map((column, at) => column.right ?? values.every((row) => typeof row[at] === "number"));
    const measured = (isTerminal ? [toMinute, toDate] : [exact]).map((form) => {
      const natural = titles.map((title, at) =>
        Math.max(columnsOf(title), ...texts.map((row) => columnsOf(form(row[at] ?? "")))),
      );
      // Ids, numbers, times and column titles are never truncated.
      const least = columns.map(({ title, whole }, at) => {
        const isWhole = at === 0 || right[at] || whole || texts.some((row) => time.test(row[at] ?? ""));
        const room = natural[at] ?? 0;
        return isWhole ? room : Math.min(room, Math.max(minWidth, columnsOf(title)));
      });
      return { form, natural, least };
    });
    for (const { form, natural, least } of measured)
      if (sum(least) <= width) return { form, stacked: false, right, widths: fitted(natural, least, width) };
    const room = width - gap.length;
    const { form, natural, least } =
      measured.find((one) => sum(one.least.slice(1)) <= room) ?? (measured[0] as (typeof measured)[number]);
    return { form, stacked: true, right, widths: [width, ...fitted(natural.slice(1), least.slice(1), room)] };
  };

  const linesOf = (texts: readonly string[], { form, stacked, right, widths }: Layout): string[] => {
    const cells = widths.map((columnWidth, at) => pad(cut(form(texts[at] ?? ""), columnWidth), columnWidth, right[at]));
    const lines = stacked ? [cells[0] ?? "", gap + cells.slice(1).join(gap)] : [cells.join(gap)];
    return lines.map((line) => line.trimEnd()).filter((line) => line !== "");
  };

  return (rows: readonly Row[]): string[] => {
    const values = rows.map((row) => columns.map(({ value }) => value(row)));
    const head = layout === undefined;
    layout ??= layOut(values);
    const known = layout;
    return [
      ...(head ? linesOf(titles, known).map((line) => line.replace(/\S.*/, (title) => paint("bold", title))) : []),
      ...values.flatMap((row) => linesOf(row.map(show), known)),
    ];
  };
};

/** Formats names and values, one per line. Undefined values are left out. */
export const fields = (entries: readonly (readonly [string, unknown])[], { paint }: Terminal): string => {
  const given = entries.filter(([, value]) => value !== undefined);
  const nameWidth = Math.max(...given.map(([name]) => columnsOf(name)));
  return given.map(([name, value]) => `${paint("dim", pad(plain(name), nameWidth))}${gap}${show(value)}`).join("\n");
};
