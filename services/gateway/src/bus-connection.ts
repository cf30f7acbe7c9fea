import { setTimeout as sleep } from "node:timers/promises";
import { type Bus, busReady, closeBus } from "@herald/bus";
import { HeraldError, type Logger } from "@herald/kit";

/** The bus reconnects by itself; only the first connection is sought here. */
const seekEveryMs = 500;
const retryAfterSeconds = 2;

export type BusConnection = {
  /** The bus. Throws bus-unavailable before the first connection. */
  readonly bus: () => Bus;
  /** True, or what is wrong with it in words. */
  readonly ready: () => true | string;
  /** Connects in the background. Without a bus the gateway is alive, answers 503 and is not ready. */
  readonly start: (onConnected: (bus: Bus) => void) => void;
  readonly stop: () => Promise<void>;
};

/** The connection to the bus, also before it exists. `connect` throws while the bus is unreachable. */
export const createBusConnection = (connect: () => Promise<Bus>, log: Logger): BusConnection => {
  const stopping = new AbortController();
  let bus: Bus | undefined;
  let seeking: Promise<void> | undefined;

  const seek = async (onConnected: (bus: Bus) => void): Promise<void> => {
    let announced = "";
    while (!stopping.signal.aborted) {
      try {
        bus = await connect();
        onConnected(bus);
        return;
      } catch (err) {
        const reason = err instanceof Error ? err.message : String(err);
        // Log a reason once, not twice a second.
        if (reason !== announced) log.error({ err }, "the message bus cannot be reached yet");
        announced = reason;
      }
      await sleep(seekEveryMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };

  return {
    bus: () => {
      if (bus === undefined)
        throw new HeraldError("bus-unavailable", "the message bus is not connected", { retryAfterSeconds });
      return bus;
    },
    ready: () => busReady(bus),
    start: (onConnected) => {
      seeking = seek(onConnected);
    },
    stop: async () => {
      stopping.abort();
      await seeking;
      if (bus !== undefined) await closeBus(bus);
    },
  };
};
