import type { BrokerSource } from "@herald/testing";
import type { System, SystemOptions } from "../harness/system.ts";

/** The result of a row. A delivery is one device of one notification. */
export type Findings = {
  /** Deliveries of all notifications that were accepted with 202. */
  readonly sent: number;
  readonly final: number;
  /** Deliveries that were not final in time. */
  readonly lost: number;
  /** Deliveries that the provider accepted more than once, with and without a mark that this may have happened. */
  readonly repeated: { readonly marked: number; readonly unmarked: number };
  /** Times of the first repeats, and their rows in the ledger. */
  readonly repeats?: readonly string[];
  /** From the end of the fault until a new send reaches its provider; after several faults, the longest time. */
  readonly recoveryMs: number | undefined;
  /** Failures in words. The row passes without any. */
  readonly problems: readonly string[];
  /** Further remarks. */
  readonly notes: readonly string[];
};

export type Stage = {
  /** Minutes for a row instead of seconds. */
  readonly long: boolean;
  /** The commit of the older version, if the command line names one. */
  readonly older: string | undefined;
  /** The lane's system, for rows that leave it as it was. The simulators have no script and have received nothing. */
  shared(): Promise<System>;
  /** The fixture of this row: it is opened for the first of the rows that name it, and closed after the last one. */
  use<Opened>(fixture: Fixture<Opened>): Promise<Opened>;
  /** Starts a system for this row, which is stopped after the row. */
  start(options?: SystemOptions): Promise<System>;
  /** Starts brokers for this row. */
  readonly brokerSource: BrokerSource;
  /** Registers a cleanup for the end of the row. The last one runs first. */
  defer(close: () => Promise<unknown>): void;
  /** Creates a folder, which is removed after the row. */
  folder(): Promise<string>;
};

/** What several rows use one after another, such as a system with variables of its own. `open` gets a stage that ends with the fixture. */
export type Fixture<Opened> = {
  readonly open: (stage: Omit<Stage, "use">) => Promise<Opened>;
};

export type Row = {
  /** Its name for `--only`. */
  readonly name: string;
  readonly fault: string;
  /** The condition to pass, besides no lost deliveries and no unmarked repeats. */
  readonly pass: string;
  /** Rows with the same fixture run one after another. */
  readonly fixture?: Fixture<unknown>;
  run(stage: Stage): Promise<Findings>;
};

/** The row cannot run on this machine. The message contains the reason. */
export class NotHere extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotHere";
  }
}
