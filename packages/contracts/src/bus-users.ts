import { type DurableName, durables } from "./streams.ts";

/** What a NATS user may do, as nats-server's configuration names it. */
export type BusPermissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/**
 * Reads one durable and nothing else: ask about it, take its next messages, settle them, and hear the answers in an inbox
 * of its own. Two forms of the ack subject, because nats-server 2.15 makes the longer one the default.
 */
export const consumerPermissions = (durable: DurableName, inboxPrefix: string): BusPermissions => {
  const { stream } = durables[durable];
  return {
    publish: [
      `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
      `$JS.ACK.${stream}.${durable}.>`,
      `$JS.ACK.*.*.${stream}.${durable}.>`,
    ],
    subscribe: [`${inboxPrefix}.>`],
  };
};
