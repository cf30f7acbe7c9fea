import type { BrokerSource } from "@herald/testing";
import type { System, SystemOptions } from "../harness/system.ts";

/** What a row found. Deliveries are one device of one notification. */
export type Findings = {
  /** Deliveries of everything that was answered 202. */
  readonly sent: number;
  readonly final: number;
  /** Without a final state when the time for it was over. */
  readonly lost: number;
  /** Accepted more than once by the provider: those that say that it may have happened, and those that do not. */
  readonly repeated: { readonly marked: number; readonly unmarked: number };
  /** When the first of those were accepted, and what the ledger says of them. */
  readonly repeats?: readonly string[];
  /** From the end of the fault until a new send has reached its provider; where it came several times, the longest. */
  readonly recoveryMs: number | undefined;
  /** What is not as it must be, in words. None: the row passes. */
  readonly problems: readonly string[];
  /** What else is worth a line. */
  readonly notes: readonly string[];
};

export type Stage = {
  /** Minutes for a row instead of seconds. */
  readonly long: boolean;
  /** The commit that is the older version, where somebody named one. */
  readonly older: string | undefined;
  /** The system that rows use which leave it as it was. */
  shared(): Promise<System>;
  /** A system of the row's own, stopped after it. */
  start(options?: SystemOptions): Promise<System>;
  /** For brokers of the row's own. */
  readonly brokerSource: BrokerSource;
  /** Called when the row is over, last first. */
  defer(close: () => Promise<unknown>): void;
  /** A new folder, removed when the row is over. */
  folder(): Promise<string>;
};

export type Row = {
  /** What `--only` calls it. */
  readonly name: string;
  readonly fault: string;
  /** What must be so, beside nothing lost and nothing twice without a mark. */
  readonly pass: string;
  run(stage: Stage): Promise<Findings>;
};

/** The row cannot be tried on this machine; the message says why. */
export class NotHere extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotHere";
  }
}
