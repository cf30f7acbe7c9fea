import { type Bus, openBucket, reportStatus, type StatusReportOptions } from "@herald/bus";
import { buckets, ServiceName, type ServiceStatus, StatusReport, type SystemStatus } from "@herald/contracts";

/** A report, and the time when it arrived. */
export type ReceivedReport = { readonly report: StatusReport; readonly at: Date };

/** A process reports every five seconds. After three missed reports it counts as not answering. */
const silentMs = 20_000;
/** The lifetime of a report in its bucket. Applied here too, because the bucket does not report expiry. */
export const shownMs = buckets.push_status.ttlMs;

type Replica = ServiceStatus["replicas"][number];

const replicaOf = ({ report, at }: ReceivedReport, now: Date): Replica => {
  const { instance, version, startedAt, failing, keys, proxy, brokerMs, databaseMs } = report;
  const silent = now.getTime() - at.getTime() > silentMs;
  return {
    instance,
    version,
    state: silent ? "not_answering" : failing.length === 0 ? "ready" : "not_ready",
    started_at: startedAt,
    last_seen_at: at.toISOString(),
    failing,
    ...(keys && { keys }),
    ...(proxy !== undefined && { proxy }),
    ...(brokerMs !== undefined && { broker_ms: brokerMs }),
    ...(databaseMs !== undefined && { database_ms: databaseMs }),
  };
};

const serviceOf = (name: ServiceName, reports: readonly ReceivedReport[], now: Date): ServiceStatus => {
  const replicas = reports
    .filter(({ report }) => report.service === name)
    .map((one) => replicaOf(one, now))
    .toSorted((one, other) => (one.instance < other.instance ? -1 : 1));
  const has = (state: Replica["state"]) => replicas.some((replica) => replica.state === state);
  return { name, state: has("ready") ? "ready" : has("not_ready") ? "not_ready" : "not_answering", replicas };
};

/** The latest measurement of each name: all replicas of a service measure the same things. */
const latest = <Row extends { readonly name: string; readonly measured_at: string }>(rows: readonly Row[]): Row[] => {
  const oldestFirst = rows.toSorted((one, other) => (one.measured_at < other.measured_at ? -1 : 1));
  const byName = new Map(oldestFirst.map((row) => [row.name, row]));
  return [...byName.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
};

/** The state of the whole system, from the last reports of its processes. */
export const systemStatus = (reports: readonly ReceivedReport[], broker: true | string, now: Date): SystemStatus => {
  const shown = reports.filter(({ at }) => now.getTime() - at.getTime() < shownMs);
  const newest = shown.toSorted((one, other) => other.at.getTime() - one.at.getTime());
  const streams = latest(shown.flatMap(({ report }) => report.streams));
  return {
    at: now.toISOString(),
    broker: broker === true ? { available: true } : { available: false, reason: broker },
    services: ServiceName.options.map((name) => serviceOf(name, shown, now)),
    streams,
    durables: latest(shown.flatMap(({ report }) => report.durables)),
    providers: newest.find(({ report }) => report.providers)?.report.providers ?? [],
    backlogs: newest.find(({ report }) => report.backlogs)?.report.backlogs ?? [],
    dead_letters: streams.find(({ name }) => name === "PUSH_DLQ")?.messages ?? null,
  };
};

type Deps = Pick<StatusReportOptions, "failing" | "keys" | "proxy"> & {
  /** True, or the reason why the bus is unavailable. */
  readonly broker: () => true | string;
  readonly now: () => Date;
};

export const createStatusDirectory = ({ failing, keys, proxy, broker, now }: Deps) => {
  const reports = new Map<string, ReceivedReport>();
  let complete = false;
  /** The number of gateways that report, this one included, when it was last known; absent before. Every request reads it. */
  const live: { gateways?: number } = {};
  const countGateways = () => {
    const reporting = [...reports.values()].filter(
      ({ report, at }) => report.service === "gateway" && now().getTime() - at.getTime() <= silentMs,
    );
    live.gateways = Math.max(1, reporting.length);
  };
  let parts: { stop(): Promise<void> }[] = [];
  return {
    /** From memory: never slow, even if other parts are unavailable. */
    read: () => systemStatus([...reports.values()], broker(), now()),
    live: live as Readonly<typeof live>,
    /** Watches the reports of all processes, and reports on this one. */
    start: (bus: Bus) => {
      complete = false;
      const watching = openBucket(bus, "push_status", StatusReport).watch(
        ({ key, value: report }) => {
          if (report === undefined) reports.delete(key);
          else {
            // A report from before the start carries its own time, by a clock that may differ.
            const at = complete ? now() : new Date(Math.min(now().getTime(), Date.parse(report.at)));
            reports.set(key, { report, at });
          }
          for (const [old, { at }] of reports) if (now().getTime() - at.getTime() > shownMs) reports.delete(old);
          // This gateway's own report comes every five seconds, so one that went silent is missed in time.
          if (complete) countGateways();
        },
        () => {
          complete = true;
          countGateways();
        },
        { keys: "*.*" },
      );
      parts = [
        watching,
        reportStatus(bus, {
          service: "gateway",
          failing,
          keys,
          proxy,
          look: async () => ({ streams: [], durables: [] }),
        }),
      ];
    },
    stop: async () => {
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
};
