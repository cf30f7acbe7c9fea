import { setTimeout as sleep } from "node:timers/promises";
import { type Bus, busReady, closeBus, sendGroupedRequest, sendRequest } from "@herald/bus";
import { deviceRequests, type RequestContract } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import type { z } from "zod";

/** Between attempts to connect for the first time. Later the bus client reconnects on its own. */
const seekEveryMs = 500;
const retryAfterSeconds = 2;

/** The connection to the bus, usable before it is established. `connect` throws while the bus is unreachable. */
export const createBusConnection = (connect: () => Promise<Bus>, log: Logger) => {
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
    /** The bus. Throws bus-unavailable before the first connection. */
    bus: () => {
      if (bus === undefined)
        throw new HeraldError("bus-unavailable", "the message bus is not connected", { retryAfterSeconds });
      return bus;
    },
    /** True, or the reason why the bus is not ready. */
    ready: () => busReady(bus),
    /** Connects in the background. Without a bus the gateway is alive, answers 503 and is not ready. */
    start: (onConnected: (bus: Bus) => void) => {
      seeking = seek(onConnected);
    },
    stop: async () => {
      stopping.abort();
      await seeking;
      if (bus !== undefined) await closeBus(bus);
    },
  };
};

/** Sends a request to another service. Throws the error in its answer, service-unavailable or bus-unavailable. */
export type SendRequest = <Request extends z.ZodType, Answer extends z.ZodType>(
  contract: RequestContract<Request, Answer>,
  data: z.input<Request>,
  options?: { readonly timeoutMs?: number },
) => Promise<z.output<Answer>>;

/** Sends requests to other services. Concurrent registrations share a message: apps send thousands a second, and registry groups them. */
export const createSendRequest = (bus: () => Bus): SendRequest => {
  const grouped = new Map<unknown, (data: never) => Promise<unknown>>([
    [deviceRequests.register, sendGroupedRequest(bus, deviceRequests.register)],
    [deviceRequests.identify, sendGroupedRequest(bus, deviceRequests.identify)],
  ]);
  const sendOne: SendRequest = async (contract, data, options) => sendRequest(bus(), contract, data, options);
  return ((contract, data, options) =>
    grouped.get(contract)?.(data as never) ?? sendOne(contract, data, options)) as SendRequest;
};
