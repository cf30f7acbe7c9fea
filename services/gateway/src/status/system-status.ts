import { buckets, ServiceName, type ServiceStatus, type StatusReport, type SystemStatus } from "@herald/contracts";

/** A report, and when it came. */
export type Heard = { readonly report: StatusReport; readonly at: Date };

/** A process reports every five seconds. One that missed three reports does not answer. */
const silentMs = 20_000;
/** The life of a report in its bucket: the bucket does not say when one ends. */
export const shownMs = buckets.push_status.ttlMs;

type Replica = ServiceStatus["replicas"][number];

const replicaOf = ({ report, at }: Heard, now: Date): Replica => {
  const { instance, version, startedAt, failing, brokerMs, databaseMs } = report;
  const silent = now.getTime() - at.getTime() > silentMs;
  return {
    instance,
    version,
    state: silent ? "not_answering" : failing.length === 0 ? "ready" : "not_ready",
    started_at: startedAt,
    last_seen_at: at.toISOString(),
    failing,
    ...(brokerMs !== undefined && { broker_ms: brokerMs }),
    ...(databaseMs !== undefined && { database_ms: databaseMs }),
  };
};

const serviceOf = (name: ServiceName, heard: readonly Heard[], now: Date): ServiceStatus => {
  const replicas = heard
    .filter(({ report }) => report.service === name)
    .map((one) => replicaOf(one, now))
    .toSorted((one, other) => (one.instance < other.instance ? -1 : 1));
  const has = (state: Replica["state"]) => replicas.some((replica) => replica.state === state);
  return { name, state: has("ready") ? "ready" : has("not_ready") ? "not_ready" : "not_answering", replicas };
};

/** All replicas of a service measure the same: the latest counts. */
const latest = <Row extends { readonly name: string; readonly measured_at: string }>(rows: readonly Row[]): Row[] => {
  const byName = new Map<string, Row>();
  for (const row of rows.toSorted((one, other) => (one.measured_at < other.measured_at ? -1 : 1)))
    byName.set(row.name, row);
  return [...byName.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
};

/** The state of the whole system, from what its processes last reported. */
export const systemStatus = (heard: readonly Heard[], broker: true | string, now: Date): SystemStatus => {
  const shown = heard.filter(({ at }) => now.getTime() - at.getTime() < shownMs);
  const newest = shown.toSorted((one, other) => other.at.getTime() - one.at.getTime());
  const streams = latest(shown.flatMap(({ report }) => report.streams));
  return {
    at: now.toISOString(),
    broker: broker === true ? { available: true } : { available: false, reason: broker },
    services: ServiceName.options.map((name) => serviceOf(name, shown, now)),
    streams,
    durables: latest(shown.flatMap(({ report }) => report.durables)),
    providers: newest.find(({ report }) => report.providers)?.report.providers ?? [],
    dead_letters: streams.find(({ name }) => name === "PUSH_DLQ")?.messages ?? null,
  };
};
