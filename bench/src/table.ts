/** Figures that goals and the plot read, by name. */
export type Figure =
  | `direct${"" | "-user" | "-metadata"}${"" | "-keyed"}${"" | "-cpu"}`
  | "direct-50ms-ratio"
  | `activities-${"latency" | "singles" | "broadcast"}`
  | `send-floor${"" | "-cpu"}`
  | `batch${"" | "-cpu"}`
  | `latency-${"p50" | "p99"}`
  | "neighbour-p99"
  | "accepted-p99"
  | `registrations${"" | "-unchanged"}`
  | `broadcast${"" | "-own-cpu"}`
  | "imports"
  | "webpush"
  | `recipients-${"device" | "user"}`
  | "recipients-p99"
  | "recipients-inline"
  | "template"
  | "device-values"
  | `rules-${"broadcast" | "singles"}`
  | "waves-cpu"
  | `receipts-${"broadcast" | "direct" | "opens"}-ratio`
  | "exports"
  | "idle-memory"
  | `peer-${"singles" | "batches" | "broadcast"}${"" | "-cpu"}`;

/** One line of a table: values by run. */
export type Line = {
  /** `row: column` in a table that it shares with nothing. */
  readonly label: string;
  readonly values: readonly number[];
  readonly digits?: number;
  /** Absent: only the table shows the line. */
  readonly figure?: Figure;
};
export type Table = {
  /** `Part: row`, if the page shows it as a row of a table that it shares. */
  readonly title: string;
  readonly lines: readonly Line[];
};

/** For an even count, the lower of the two middle values. */
export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor((numbers.length - 1) / 2)] ?? 0;

/** The median of a figure; undefined if it was not measured. With several audiences, the last and largest counts. */
export const figureIn =
  (tables: readonly Table[]) =>
  (figure: Figure): number | undefined => {
    const line = tables.flatMap(({ lines }) => lines).findLast((one) => one.figure === figure);
    return line === undefined ? undefined : median(line.values);
  };

/** Minimum, median and maximum, because values vary on a shared machine. */
export const spread = (numbers: readonly number[], digits = 0): [string, string, string] => {
  const [min, max] = [Math.min(...numbers), Math.max(...numbers)];
  return [min.toFixed(digits), median(numbers).toFixed(digits), max.toFixed(digits)];
};

/** The value that `percent` per cent of the values do not exceed. */
export const percentile = (values: readonly number[], percent: number): number =>
  values.toSorted((one, other) => one - other)[Math.ceil((values.length * percent) / 100) - 1] ?? 0;

const labelWidth = 40;

export const printTable = ({ title, lines }: Table, runs: number): void => {
  console.log(`\n${title} (minimum / median / maximum of ${runs})`);
  for (const { label, values, digits } of lines)
    console.log(`  ${label.padEnd(labelWidth)} ${spread(values, digits).join(" / ")}`);
};
