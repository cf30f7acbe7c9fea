import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { busUsers } from "@herald/bus/permissions";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type Msg, nanos } from "@nats-io/transport-node";
import type { Broker } from "./start-broker.ts";

export type BrokerHands = {
  /** Any bytes on any subject, past every contract. Waits until the stream has taken it. */
  publish(subject: string, body: string | Uint8Array, header?: Readonly<Record<string, string>>): Promise<void>;
  /** From now on every message on these subjects comes `times` more, each after a random while of at most `withinMs`. */
  repeat(subjects: readonly string[], options: { times: number; withinMs: number }): { stop(): Promise<number> };
  /** Sets a stream's limit of bytes, and gives what it was. */
  limit(stream: string, maxBytes: number): Promise<number>;
  /** Empties a stream, as a broker that lost its data. */
  purge(stream: string): Promise<void>;
  /** What a stream holds. */
  state(stream: string): Promise<{ readonly messages: number; readonly bytes: number }>;
  /** The name of the server that leads a stream; undefined while none does, or where there is no cluster. */
  leader(stream: string): Promise<string | undefined>;
  /** How many brokers hold a copy of a stream. */
  copies(stream: string): Promise<number>;
  /** Sends any bytes to a request's subject, and returns the reply as text. Throws when there is no reply. */
  ask(subject: string, body: string | Uint8Array): Promise<string>;
  /** Every subject on which somebody publishes from now on, that of answers and of the broker's own interface too. */
  watch(): { readonly seen: ReadonlySet<string>; stop(): Promise<void> };
  /** How many messages a durable has not settled, those that it has not given out included. */
  left(stream: string, durable: string): Promise<number>;
  /** How many messages a durable has given out that are not settled. */
  unsettled(stream: string, durable: string): Promise<number>;
  /** Has a durable's messages redelivered after so many milliseconds, so that a test need not wait as long as a consumer may. */
  setAckWait(stream: string, durable: string, ms: number): Promise<void>;
  close(): Promise<void>;
};

/** Marks what was repeated, so that a repeat is not repeated again. */
const repeatedHeader = "Test-Repeated";
/** Those of the broker's own making, which a publisher may not set, and the id that would have the stream drop the repeat. */
const notRepeated = /^(Nats-Msg-Id|Nats-Expected-.*|Nats-Batch-.*)$/i;

/** What an operator, or a network that repeats itself, can do to the streams of a broker. */
export async function operateBroker({
  url,
  user,
  password,
}: Pick<Broker, "url" | "user" | "password">): Promise<BrokerHands> {
  const nc = await connect({
    servers: url.split(","),
    maxReconnectAttempts: -1,
    inboxPrefix: busUsers.gateway.inboxPrefix, // services answer requests of the gateway alone
    ...(user && { user, pass: password ?? "" }),
  });
  const jsm = await jetstreamManager(nc);
  const js = jsm.jetstream();

  const again = async (message: Msg, withinMs: number): Promise<boolean> => {
    await delay(Math.random() * withinMs);
    const copied = headers();
    for (const [name, values] of message.headers ?? [])
      if (!notRepeated.test(name)) for (const value of values) copied.append(name, value);
    copied.set(repeatedHeader, "1");
    copied.set("Nats-Msg-Id", randomUUID());
    // A full subject or a schedule whose time has passed is refused, as for any other publisher.
    return js.publish(message.subject, message.data, { headers: copied }).then(
      () => true,
      () => false,
    );
  };

  return {
    publish: async (subject, body, header = {}) => {
      const set = headers();
      for (const [name, value] of Object.entries(header)) set.set(name, value);
      await js.publish(subject, body, { headers: set });
    },
    repeat: (subjects, { times, withinMs }) => {
      const copies: Promise<boolean>[] = [];
      const subscriptions = subjects.map((subject) =>
        nc.subscribe(subject, {
          callback: (error, message) => {
            if (error || message.headers?.has(repeatedHeader)) return;
            for (let count = 0; count < times; count++) copies.push(again(message, withinMs));
          },
        }),
      );
      return {
        stop: async () => {
          for (const subscription of subscriptions) await subscription.drain();
          return (await Promise.all(copies)).filter(Boolean).length;
        },
      };
    },
    limit: async (stream, maxBytes) => {
      const { config } = await jsm.streams.info(stream);
      await jsm.streams.update(stream, { max_bytes: maxBytes });
      return config.max_bytes;
    },
    purge: async (stream) => {
      await jsm.streams.purge(stream);
    },
    state: async (stream) => (await jsm.streams.info(stream)).state,
    leader: async (stream) => (await jsm.streams.info(stream)).cluster?.leader,
    copies: async (stream) => (await jsm.streams.info(stream)).config.num_replicas,
    ask: async (subject, body) => (await nc.request(subject, body, { timeout: 30_000 })).string(),
    watch: () => {
      const seen = new Set<string>();
      const subscription = nc.subscribe(">", { callback: (error, { subject }) => void (error ?? seen.add(subject)) });
      return { seen, stop: () => subscription.drain() };
    },
    setAckWait: async (stream, durable, ms) => {
      await jsm.consumers.update(stream, durable, { ack_wait: nanos(ms) });
    },
    left: async (stream, durable) => {
      const { num_pending, num_ack_pending } = await jsm.consumers.info(stream, durable);
      return num_pending + num_ack_pending;
    },
    unsettled: async (stream, durable) => (await jsm.consumers.info(stream, durable)).num_ack_pending,
    close: () => nc.close(),
  };
}
