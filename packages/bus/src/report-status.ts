import { hostname } from "node:os";
import { type ServiceName, StatusReport } from "@herald/contracts";
import { repeat } from "@herald/kit";
import { openBucket } from "./bucket.ts";
import { type Bus, connectionOf } from "./connect.ts";

/** Each report is one fsynced message. */
const defaultIntervalMs = 5_000;

export type StatusReportOptions = {
  readonly service: ServiceName;
  readonly version: string;
  /** What the process knows of itself. May throw: then the next report says it. */
  readonly look: () => Promise<
    Omit<StatusReport, "service" | "instance" | "version" | "startedAt" | "at" | "brokerMs">
  >;
  readonly everyMs?: number;
};

/** A container keeps its host name when its process restarts, so the next report replaces the last one. */
const instance = `${hostname().replaceAll(/[^A-Za-z0-9_-]/g, "-")}-${process.pid}`;

/** Writes what this process knows of itself into a bucket that the gateway watches. A stop removes the report. */
export const reportStatus = (
  bus: Bus,
  { service, version, look, everyMs = defaultIntervalMs }: StatusReportOptions,
): { stop(): Promise<void> } => {
  const connection = connectionOf(bus);
  const bucket = openBucket(bus, "push_status", StatusReport);
  const key = `${service}.${instance}`;
  const startedAt = new Date().toISOString();
  let brokerMs: number | undefined;
  const reporting = repeat("report the status", everyMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const found = await look();
    if (signal.aborted) return;
    const begun = performance.now();
    const report = { service, instance, version, startedAt, at: new Date().toISOString(), ...found };
    await bucket.put(key, { ...report, ...(brokerMs !== undefined && { brokerMs }) });
    brokerMs = Math.round((performance.now() - begun) * 10) / 10;
  });
  return {
    stop: async () => {
      await reporting.stop();
      // Without a broker the report grows old instead.
      await bucket.delete(key).catch(() => {});
    },
  };
};
