import { converse } from "./converse.ts";

export type Load = {
  readonly to: URL;
  /** Complete HTTP/1.1 requests, assigned to the connections in turn. */
  readonly requests: readonly string[];
  readonly connections: number;
  /** Requests a second. Absent: each connection sends its next request as soon as the previous one is answered. */
  readonly pace?: number | undefined;
};

/** The result of a load. */
export type Answered = {
  /** Milliseconds since 1970, without the start-up time of the process. */
  readonly beganAt: number;
  readonly seconds: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Latency of each request in ms. At a pace it counts from the due time, so it includes the wait behind slow requests. */
  readonly latencies: readonly number[];
  /** CPU of the load itself. */
  readonly cpuMicros: number;
};

/** Sends all requests from this process, and prints an {@link Answered} as one line of JSON. */
export const runLoad = async ({ to, requests, connections, pace }: Load): Promise<void> => {
  const lanes = Math.min(connections, requests.length);
  const everyMs = pace === undefined ? undefined : 1000 / pace;
  const statuses: Record<string, number> = {};
  const latencies: number[] = [];
  const beganAt = Date.now();
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const converseOn = (lane: number): Promise<void> => {
    const mine = requests.filter((_, index) => index % lanes === lane);
    const sentAt: number[] = [];
    const allowed = (answered: number): number => {
      if (everyMs !== undefined) return Math.floor(((performance.now() - begin) / everyMs - lane) / lanes) + 1;
      sentAt[answered] ??= performance.now();
      return answered + 1;
    };
    const dueAt = (index: number): number =>
      everyMs === undefined ? (sentAt[index] ?? begin) : begin + (index * lanes + lane) * everyMs;
    const onAnswer = (index: number, status: string) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      latencies.push(performance.now() - dueAt(index));
    };
    return converse({ port: Number(to.port), host: to.hostname }, { requests: mine, allowed, onAnswer });
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => converseOn(lane)));
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  process.stdout.write(`${JSON.stringify({ beganAt, seconds, statuses, latencies, cpuMicros: user + system })}\n`);
};
