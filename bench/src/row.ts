import type { Provider } from "@herald/contracts";
import type { System } from "./herald.ts";
import type { Sink } from "./sinks.ts";

/** What rows measure with; the system runs once for all of them. */
export type Context = {
  readonly system: System;
  readonly sinks: Readonly<Record<Provider, Sink>>;
  /** How often each figure is measured. */
  readonly runs: number;
  /** Audiences of broadcasts. */
  readonly sizes: readonly number[];
  /** The largest audience, which is sent to once. */
  readonly largest: number;
  /** Opens in one run, true or forged. */
  readonly opens: number;
  /** Opens that are stored when statistics are asked for, and devices of a project that are listed: by project. */
  readonly opensStored: readonly number[];
  readonly listed: readonly number[];
};

/** One line of a table: a figure by its run. */
export type Line = { readonly label: string; readonly values: readonly number[]; readonly digits?: number };
export type Table = {
  readonly title: string;
  /** Its name in a plot. */
  readonly short?: string;
  readonly lines: readonly Line[];
};

/** One row of what Herald must reach: a file in `rows/`, listed in `rows/all-rows.ts`. */
export type Row = {
  /** What `--only` calls it. */
  readonly name: string;
  /** Gives a table after the other. Throws where a count is not exact: a speed without that is worth nothing. */
  readonly measure: (context: Context) => AsyncIterable<Table>;
};

/** Minimum, median and maximum: a machine that others share gives no single figure. */
export const spread = (numbers: readonly number[], digits = 0): [string, string, string] => {
  const sorted = numbers.toSorted((one, other) => one - other);
  const at = (index: number) => (sorted[index] ?? 0).toFixed(digits);
  return [at(0), at(Math.floor((sorted.length - 1) / 2)), at(sorted.length - 1)];
};

/** The value below which so many of a hundred are. */
export const percentile = (values: readonly number[], percent: number): number =>
  values.toSorted((one, other) => one - other)[Math.ceil((values.length * percent) / 100) - 1] ?? 0;

const labelWidth = 40;

export const printTable = ({ title, lines }: Table, runs: number): void => {
  console.log(`\n${title} (minimum / median / maximum of ${runs})`);
  for (const { label, values, digits } of lines)
    console.log(`  ${label.padEnd(labelWidth)} ${spread(values, digits).join(" / ")}`);
};
