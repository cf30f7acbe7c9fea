import { setTimeout as sleep } from "node:timers/promises";
import type { BucketName } from "@herald/contracts";
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from "@nats-io/jetstream";
import { isMissing } from "./bus-error.ts";
import { type Connection, whenConnected } from "./connect.ts";
import { isDeletion } from "./message-headers.ts";

export type Watching = {
  /** All existing entries were delivered, and the connection is up. */
  ready(): boolean;
  stop(): Promise<void>;
};

export type Watcher = {
  /** A key's value as text; undefined when the key was deleted. */
  readonly entry: (key: string, text: string | undefined) => void;
  readonly ready: () => void;
};

const retryMs = { first: 100, longest: 2_000 };
/** Half of this is the heartbeat, and two missed ones mean that the broker forgot the watch. */
const expiresMs = 6_000;

const notMade = "the bucket does not exist yet, waiting for the bootstrap step to make it";

/** Watches a bucket until it is stopped. Restarts the watch after a lost connection or bucket. */
export const watchBucket = (connection: Connection, name: BucketName, keys: string, watcher: Watcher): Watching => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const prefix = `$KV.${name}.`;
  const live = new Set<string>();
  let current: ConsumerMessages | undefined;
  let complete = false;

  const onConnection = () => {
    complete = false;
    current?.stop();
  };
  connection.listeners.add(onConnection);

  const take = (message: JsMsg, seen: Set<string> | undefined) => {
    const key = message.subject.slice(prefix.length);
    if (isDeletion(message.headers)) {
      live.delete(key);
      watcher.entry(key, undefined);
    } else {
      live.add(key);
      seen?.add(key);
      watcher.entry(key, message.string());
    }
  };

  /** One pass: everything there is, then every change, until the connection or the bucket is lost. */
  const follow = async () => {
    const consumer = await connection.js.consumers.get(`KV_${name}`, {
      filter_subjects: `${prefix}${keys}`,
      deliver_policy: DeliverPolicy.LastPerSubject,
      inactive_threshold: 30_000,
    });
    const seen = new Set<string>();
    let left = (await consumer.info(true)).num_pending;
    const caughtUp = () => {
      for (const key of live) if (!seen.has(key)) live.delete(key) && watcher.entry(key, undefined);
      complete = true;
      watcher.ready();
    };
    current = await consumer.consume({ expires: expiresMs, abort_on_missing_resource: true });
    if (signal.aborted) current.stop();
    if (left === 0) caughtUp();
    for await (const message of current) {
      take(message, complete ? undefined : seen);
      // The count shrinks when a key vanishes meanwhile, and only the broker knows then.
      if (!complete && (--left === 0 || message.info.pending === 0)) caughtUp();
    }
  };

  const run = async () => {
    for (let delay = retryMs.first; !signal.aborted; ) {
      await whenConnected(connection, signal);
      if (signal.aborted) break;
      try {
        await follow();
        delay = retryMs.first;
      } catch (err) {
        if (connection.connected && delay === retryMs.first)
          connection.log.warn({ err, bucket: name }, isMissing(err) ? notMade : "watching the bucket again");
        delay = Math.min(delay * 2, retryMs.longest);
      }
      complete = false;
      if (!signal.aborted) await sleep(delay, undefined, { signal }).catch(() => {});
    }
  };
  const running = run();

  return {
    ready: () => complete && connection.connected,
    async stop() {
      stopping.abort();
      connection.listeners.delete(onConnection);
      current?.stop();
      await running;
    },
  };
};
