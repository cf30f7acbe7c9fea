import type { Provider } from "@herald/contracts";
import type { System } from "./herald.ts";
import type { Peer } from "./peer.ts";
import type { Sink } from "./sinks.ts";
import type { Table } from "./table.ts";

/** What rows measure with; the system runs once for all of them. */
export type Context = {
  readonly system: System;
  readonly sinks: Readonly<Record<Provider, Sink>>;
  /** How often each figure is measured. */
  readonly runs: number;
  /** Single notifications in one run. */
  readonly singles: number;
  /** Audiences of broadcasts. */
  readonly sizes: readonly number[];
  /** The largest audience, which is sent to once. */
  readonly largest: number;
  /** Opens in one run, true or forged. */
  readonly opens: number;
  /** Opens that are stored when statistics are asked for, and devices of a project that are listed: by project. */
  readonly opensStored: readonly number[];
  readonly listed: readonly number[];
  /** What another sender did in this run; absent: none was named, or its row was left out. */
  peer?: Peer;
};

/** One row of what Herald must reach: a file in `rows/`, listed in `rows/all-rows.ts`. */
export type Row = {
  /** What `--only` calls it. */
  readonly name: string;
  /** What it measures, for `--help`. */
  readonly about: string;
  /** Gives a table after the other. Throws where a count is not exact: a speed without that is worth nothing. */
  readonly measure: (context: Context) => AsyncIterable<Table>;
};
