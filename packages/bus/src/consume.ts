import { type Bus, connectionOf } from "./connect.ts";
import { type Consumer, startConsumer } from "./consumer-loop.ts";
import type { Handler } from "./define-handler.ts";

declare const opaque: unique symbol;

/** Handlers at work. */
export type Consuming = {
  readonly [opaque]: true;
  /**
   * Pulls nothing more, gives back what has not begun or is held, and waits for what runs. What still runs after `deadlineMs`
   * is given back too, and its signal aborted. Afterwards nothing is in flight, and no timer or subscription is left.
   */
  stop(deadlineMs: number): Promise<void>;
};

type Inside = { readonly consumers: readonly Consumer[] };

/**
 * Works on the messages of the handlers' durables until it is stopped, through reconnects, leader changes and durables that do
 * not exist yet. Resolves at once; {@link areConsumersReady} says when every durable was found.
 */
export const consume = async (bus: Bus, handlers: readonly Handler[]): Promise<Consuming> => {
  const connection = connectionOf(bus);
  const consumers = handlers.map((handler) => startConsumer(connection, handler));
  const consuming: Omit<Consuming, typeof opaque> & Inside = {
    consumers,
    async stop(deadlineMs) {
      const givenBack = await Promise.all(consumers.map((lane) => lane.stop(deadlineMs)));
      const late = givenBack.reduce((sum, count) => sum + count, 0);
      if (late > 0) connection.log.warn({ late, deadlineMs }, "messages were still in work and are given back");
    },
  };
  return consuming as unknown as Consuming;
};

/** For readiness: the bus is connected and every durable exists and is being pulled from. */
export const areConsumersReady = (consuming: Consuming): boolean =>
  (consuming as unknown as Inside).consumers.every((lane) => lane.ready());
