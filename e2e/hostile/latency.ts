import { setTimeout as delay } from "node:timers/promises";
import { request } from "@herald/testing";

/**
 * Asks a service that the attack leaves alone for its life, every few milliseconds. How many of its answers come while a call waits says
 * how long the call waits on this machine: a busy machine delays both, a service that is held up only the call.
 */
export const startTicks = ({ url }: { readonly url: string }) => {
  const at: number[] = [];
  let running = true;
  const ticking = (async () => {
    for (; running; await delay(4)) {
      await request(url, "GET /livez");
      at.push(Date.now());
    }
  })();
  return {
    count: () => at.length,
    between: (from: number, to: number) => at.filter((one) => one > from && one < to).length,
    stop: async () => {
      running = false;
      await ticking;
    },
  };
};

/** What a call that is not held up may wait, in ticks: about a second and a half on an idle machine. */
export const maxTicks = 300;

export type Latency = {
  /** The 99th percentile in ms, to be shown: how long an answer takes depends on what else the machine does. */
  readonly p99: number;
  /** The ticks of the reference during the call that waited for the most. */
  readonly ticks: number;
  readonly answered: number;
};

/**
 * Calls `ask` again and again, one call after another, while `during` runs. Only answers with 200 count. `reference` is a service that
 * `during` leaves alone.
 */
export const latencyDuring = async (
  ask: () => Promise<{ readonly status: number }>,
  during: () => Promise<unknown>,
  reference: { readonly url: string },
): Promise<Latency> => {
  const ticks = startTicks(reference);
  let running = true;
  let most = 0;
  const times: number[] = [];
  const calling = (async () => {
    while (running) {
      const [begin, before] = [performance.now(), ticks.count()];
      const { status } = await ask();
      if (status !== 200) continue;
      times.push(performance.now() - begin);
      most = Math.max(most, ticks.count() - before);
    }
  })();
  try {
    await during();
  } finally {
    running = false;
    await Promise.all([calling, ticks.stop()]);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const p99 = Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10;
  return { p99, ticks: most, answered: times.length };
};
