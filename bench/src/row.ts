import type { Provider } from "@herald/contracts";
import type { System } from "./herald.ts";
import type { Peer } from "./peer.ts";
import type { Sink } from "./sinks.ts";
import type { Table } from "./table.ts";

/** The system and sizes that rows measure with. All rows share one running system. */
export type Context = {
  readonly system: System;
  readonly sinks: Readonly<Record<Provider, Sink>>;
  /** How often each figure is measured. */
  readonly runs: number;
  /** Single notifications in one run. */
  readonly singles: number;
  /** Audiences of broadcasts. */
  readonly sizes: readonly number[];
  /** The largest audience, for one send. */
  readonly largest: number;
  /** Opens in one run, true or forged. */
  readonly opens: number;
  /** Numbers of stored opens for the statistics, and of devices for the device list; each number gets its own project. */
  readonly opensStored: readonly number[];
  readonly listed: readonly number[];
  /** The figures of another sender in this run. Absent if no peer was given or its row did not run. */
  peer?: Peer;
};

/** One benchmark: a file in `rows/`, listed in `rows/all-rows.ts`. */
export type Row = {
  /** Its name for `--only`. */
  readonly name: string;
  /** Description for `--help`. */
  readonly about: string;
  /** Yields tables one by one. Throws if a count is not exact, because a speed with wrong counts means nothing. */
  readonly measure: (context: Context) => AsyncIterable<Table>;
};
