import { type Bus, openBucket, reportStatus, type StatusReportOptions } from "@herald/bus";
import { StatusReport, type SystemStatus } from "@herald/contracts";
import { type Heard, shownMs, systemStatus } from "./system-status.ts";

export type StatusDirectory = {
  /** From memory: never slow, whatever is unavailable. */
  readonly read: () => SystemStatus;
  /** Follows what all processes report, and reports on this one. */
  readonly start: (bus: Bus) => void;
  readonly stop: () => Promise<void>;
};

type Deps = Pick<StatusReportOptions, "look" | "version"> & {
  /** True, or what is wrong with the bus. */
  readonly broker: () => true | string;
  readonly now: () => Date;
};

export const createStatusDirectory = ({ look, version, broker, now }: Deps): StatusDirectory => {
  const heard = new Map<string, Heard>();
  let parts: { stop(): Promise<void> }[] = [];
  return {
    read: () => systemStatus([...heard.values()], broker(), now()),
    start: (bus) => {
      let complete = false;
      const watching = openBucket(bus, "push_status", StatusReport).watch(
        ({ key, value: report }) => {
          if (report === undefined) heard.delete(key);
          else {
            // What was there before says itself when it was written, by a clock that may differ.
            const at = complete ? now() : new Date(Math.min(now().getTime(), Date.parse(report.at)));
            heard.set(key, { report, at });
          }
          for (const [old, { at }] of heard) if (now().getTime() - at.getTime() > shownMs) heard.delete(old);
        },
        () => {
          complete = true;
        },
      );
      parts = [watching, reportStatus(bus, { service: "gateway", version, look })];
    },
    stop: async () => {
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
};
