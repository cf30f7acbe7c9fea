import { type Bus, connectionOf } from "./connect.ts";
import { type Consumer, startConsumer } from "./consumer-loop.ts";
import type { Handler } from "./define-handler.ts";

declare const opaque: unique symbol;

/** Handlers that are consuming. */
export type Consuming = {
  readonly [opaque]: true;
  /**
   * Stops pulling, returns messages that are held or not started, and waits for running handlers. After `deadlineMs` it aborts their
   * signal and returns their messages too. Leaves no message in flight, no timer and no subscription.
   */
  stop(deadlineMs: number): Promise<void>;
};

type Inside = { readonly consumers: readonly Consumer[] };

/**
 * Consumes the handlers' durables until it is stopped. Survives reconnects, leader changes and durables that do not exist yet.
 * Resolves at once; {@link areConsumersReady} says when it has found every durable.
 */
export const consume = async (bus: Bus, handlers: readonly Handler[]): Promise<Consuming> => {
  const connection = connectionOf(bus);
  const consumers = handlers.map((handler) => startConsumer(connection, handler));
  const consuming: Omit<Consuming, typeof opaque> & Inside = {
    consumers,
    async stop(deadlineMs) {
      const givenBack = await Promise.all(consumers.map((consumer) => consumer.stop(deadlineMs)));
      const late = givenBack.reduce((sum, count) => sum + count, 0);
      if (late > 0)
        connection.log.warn({ late, deadlineMs }, "returned messages whose handlers did not end before the deadline");
    },
  };
  return consuming as unknown as Consuming;
};

/** For readiness: the bus is connected, every durable exists, and the consumers pull. */
export const areConsumersReady = (consuming: Consuming): boolean =>
  (consuming as unknown as Inside).consumers.every((consumer) => consumer.ready());
