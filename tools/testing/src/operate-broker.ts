import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { busUsers } from "@herald/bus/permissions";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type Msg, nanos } from "@nats-io/transport-node";
import type { Broker } from "./start-broker.ts";

export type BrokerHands = Awaited<ReturnType<typeof operateBroker>>;

/** Marks messages that were published again, so that they are not published again. */
const againHeader = "Test-Published-Again";
/** Headers that the second message must not copy: the broker acts on them, and would drop a message with the same id as a duplicate. */
const notCopied = /^(Nats-Msg-Id|Nats-Expected-.*|Nats-Batch-.*)$/i;

/** Everything that an operator, or a network that duplicates messages, can do to a broker's streams. */
export async function operateBroker({ url, user, password }: Pick<Broker, "url" | "user" | "password">) {
  const nc = await connect({
    servers: url.split(","),
    maxReconnectAttempts: -1,
    inboxPrefix: busUsers.gateway.inboxPrefix, // services answer only the gateway's requests
    ...(user && { user, pass: password ?? "" }),
  });
  const jsm = await jetstreamManager(nc);
  const js = jsm.jetstream();

  const publishAgain = async (message: Msg, withinMs: number): Promise<boolean> => {
    await delay(Math.random() * withinMs);
    const copied = headers();
    for (const [name, values] of message.headers ?? [])
      if (!notCopied.test(name)) for (const value of values) copied.append(name, value);
    copied.set(againHeader, "1");
    copied.set("Nats-Msg-Id", randomUUID());
    // The stream refuses it on a full subject or of a past schedule, as from any other publisher.
    return js.publish(message.subject, message.data, { headers: copied }).then(
      () => true,
      () => false,
    );
  };

  return {
    /** Publishes any bytes on any subject, without a contract. Resolves after the stream's ack. */
    publish: async (subject: string, body: string | Uint8Array, header: Readonly<Record<string, string>> = {}) => {
      const set = headers();
      for (const [name, value] of Object.entries(header)) set.set(name, value);
      await js.publish(subject, body, { headers: set });
    },
    /** Publishes every new message on these subjects `times` more, each after a random delay of up to `withinMs`. */
    publishAgain: (subjects: readonly string[], { times, withinMs }: { times: number; withinMs: number }) => {
      const copies: Promise<boolean>[] = [];
      const subscriptions = subjects.map((subject) =>
        nc.subscribe(subject, {
          callback: (error, message) => {
            if (error || message.headers?.has(againHeader)) return;
            for (let count = 0; count < times; count++) copies.push(publishAgain(message, withinMs));
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
    /** Sets a stream's limit in bytes and returns the previous limit. */
    limit: async (stream: string, maxBytes: number) => {
      const { config } = await jsm.streams.info(stream);
      await jsm.streams.update(stream, { max_bytes: maxBytes });
      return config.max_bytes;
    },
    /** Makes a stream refuse messages until the returned function is called. */
    refuse: async (stream: string) => {
      const { config } = await jsm.streams.info(stream);
      await jsm.streams.update(stream, { max_msg_size: 1 });
      return async () => {
        await jsm.streams.update(stream, { max_msg_size: config.max_msg_size });
      };
    },
    /** Empties a stream, as if the broker had lost its data. */
    purge: async (stream: string) => {
      await jsm.streams.purge(stream);
    },
    /** The size of a stream. */
    state: async (stream: string) => (await jsm.streams.info(stream)).state,
    /** The name of a stream's leader; undefined without a leader or a cluster. */
    leader: async (stream: string) => (await jsm.streams.info(stream)).cluster?.leader,
    /** How many brokers hold a copy of a stream. */
    copies: async (stream: string) => (await jsm.streams.info(stream)).config.num_replicas,
    /** Sends any bytes to a request's subject, and returns the reply as text. Throws when there is no reply. */
    ask: async (subject: string, body: string | Uint8Array) =>
      (await nc.request(subject, body, { timeout: 30_000 })).string(),
    /** Collects every subject of new messages, including replies and requests to the broker's API. */
    watch: () => {
      const seen = new Set<string>();
      const subscription = nc.subscribe(">", { callback: (error, { subject }) => void (error ?? seen.add(subject)) });
      return { seen, stop: () => subscription.drain() };
    },
    /** Sets a durable's ack wait, so that a test need not wait as long as in production. */
    setAckWait: async (stream: string, durable: string, ms: number) => {
      await jsm.consumers.update(stream, durable, { ack_wait: nanos(ms) });
    },
    /** Holds a durable's messages back until the returned function is called. */
    pause: async (stream: string, durable: string) => {
      await jsm.consumers.pause(stream, durable, new Date(Date.now() + 3_600_000));
      return async () => {
        await jsm.consumers.resume(stream, durable);
      };
    },
    /** How many messages a durable has not settled, including undelivered ones. */
    left: async (stream: string, durable: string) => {
      const { num_pending, num_ack_pending } = await jsm.consumers.info(stream, durable);
      return num_pending + num_ack_pending;
    },
    /** How many delivered messages of a durable are not settled. */
    unsettled: async (stream: string, durable: string) => (await jsm.consumers.info(stream, durable)).num_ack_pending,
    close: () => nc.close(),
  };
}
