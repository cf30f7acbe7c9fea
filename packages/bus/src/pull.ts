import { setTimeout as sleep } from "node:timers/promises";
import type { DurableName, StreamName } from "@herald/contracts";
import { withTimeout } from "@herald/kit";
import { createInbox, type Msg, nanos } from "@nats-io/transport-node";
import { isMissing } from "./bus-error.ts";
import type { BusConnection } from "./connect.ts";
import { type Received, toReceived } from "./received-message.ts";

type PullOptions = {
  readonly stream: StreamName;
  readonly durable: DurableName;
  /** How much may be requested now. */
  readonly room: () => { readonly messages: number; readonly bytes: number };
  readonly receive: (received: Received) => void;
  /** Called when the durable is found, with the broker's ack wait for it. */
  readonly attached: (ackWaitMs: number) => void;
};

/**
 * A request expires after this and is renewed. The broker may read a request whose connection is lost already, and delivers messages to it
 * although nobody receives them. Shorter than the ack wait, so that their first redelivery goes to a request of an open connection.
 */
const expiresMs = 5_000;
/** Interval of idle heartbeats: one small message per second and durable. */
const heartbeatMs = 1_000;
/** Checks without a heartbeat after which the request is renewed: a new leader does not know requests to the old one. */
const maxSilentChecks = 4;
/** A partitioned leader does not answer; within seconds the cluster elects another. */
const attachTimeoutMs = 2_000;
const retryMs = { first: 100, longest: 2_000 };
/** The broker counts subject and reply besides the payload. */
const overheadBytes = 8_192;

/**
 * Pulls a durable's messages while there is room. Survives reconnects, leader changes and a missing durable. The client's own loop is
 * unsuitable: it limits either messages or bytes, and it hides prefetched messages, so that Herald could not signal progress for them.
 */
export const pull = (connection: BusConnection, options: PullOptions) => {
  const { nc, jsm, log } = connection;
  const { stream, durable, room, receive } = options;
  const api = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;
  const stopping = new AbortController();
  let request: { id: number; messages: number; left: number } | undefined;
  let requests = 0;
  let attached = false;
  let attaching = false;
  /** Counts checks, not time: after a stall the process has not yet read the heartbeats that arrived meanwhile. */
  let silent = 0;

  const pause = (ms: number): Promise<undefined> =>
    sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);

  const ask = () => {
    if (!attached || request !== undefined || stopping.signal.aborted) return;
    const { messages, bytes } = room();
    // With less room the broker could not deliver the largest message and would refuse every request at once.
    if (messages < 1 || bytes < (nc.info?.max_payload ?? 0) + overheadBytes) return;
    request = { id: ++requests, messages, left: messages };
    silent = 0;
    const terms = { batch: messages, max_bytes: bytes, expires: nanos(expiresMs), idle_heartbeat: nanos(heartbeatMs) };
    nc.publish(api, JSON.stringify(terms), { reply: `${inbox}.${requests}` });
  };

  const detach = () => {
    attached = false;
    request = undefined;
    void attach(retryMs.first);
  };

  const attach = async (waitMs = 0) => {
    if (attaching) return;
    attaching = true;
    let isReported = false;
    if (waitMs > 0) await pause(waitMs);
    for (
      let delay = retryMs.first;
      !attached && !stopping.signal.aborted;
      delay = Math.min(delay * 2, retryMs.longest)
    ) {
      try {
        if (connection.connected) {
          const info = await Promise.race([jsm.consumers.info(stream, durable), pause(attachTimeoutMs)]);
          if (info === undefined) throw new Error("the durable has no leader");
          attached = connection.connected;
          if (attached) options.attached((info.config.ack_wait ?? 0) / 1e6);
        }
      } catch (error) {
        if (!isReported && isMissing(error))
          log.warn({ durable, stream }, "the durable does not exist yet, waiting for the bootstrap step to create it");
        else if (!isReported && connection.connected)
          log.warn({ err: error, durable }, "cannot read the durable, retrying");
        isReported = true;
      }
      if (!attached) await pause(delay);
    }
    attaching = false;
    if (isReported && attached) log.info({ durable, stream }, "found the durable");
    ask();
  };

  const onStatus = (msg: Msg) => {
    if (request === undefined || msg.subject !== `${inbox}.${request.id}`) return;
    const code = msg.headers?.code ?? 0;
    if (code === 100) return;
    const { left, messages } = request;
    request = undefined;
    // 408 and most 409s end a request normally; the others mean that the durable is gone.
    const ordinary = code === 408 || (code === 409 && !lost.test(msg.headers?.description ?? ""));
    if (!ordinary) detach();
    else if (code === 408 || left < messages) ask();
    else void pause(retryMs.first).then(ask);
  };

  const onMessage = (error: Error | null, msg: Msg, from: string) => {
    if (error) {
      log.error({ err: error, durable }, "the subscription to messages failed");
      return;
    }
    silent = 0;
    if (msg.subject.startsWith(from)) {
      onStatus(msg);
      return;
    }
    if (from === inbox) {
      if (request !== undefined && --request.left === 0) request = undefined;
      if (endsReply(msg)) renewInbox();
    }
    receive(toReceived(msg));
    ask();
  };

  const listen = () => {
    const from = createInbox(connection.inboxPrefix);
    const subscription = nc.subscribe(`${from}.*`, {
      // An exception in a callback would end the client's reader.
      callback: (error, msg) => {
        try {
          onMessage(error, msg, from);
        } catch (err) {
          log.error({ err, durable }, "could not receive a message");
        }
      },
    });
    return { inbox: from, subscription };
  };
  let { inbox, subscription } = listen();

  /** Ends the subscription of a request, so that the broker drops it and delivers nothing to it. */
  const renewInbox = () => {
    if (connection.connected)
      subscription.drain().catch((err: unknown) => log.debug({ err, durable }, "the inbox was already closed"));
    else subscription.unsubscribe();
    ({ inbox, subscription } = listen());
    request = undefined;
  };

  const watchdog = setInterval(() => {
    if (request === undefined) {
      ask();
    } else if (connection.connected && ++silent > maxSilentChecks) {
      log.warn({ durable }, "the broker lost a pull request; sending another");
      detach();
    }
  }, heartbeatMs);

  const onConnection = (connected: boolean) => {
    attached = false;
    // The broker may keep the request of a lost connection, and has forgotten how replies to it reach this account: it would deliver
    // into the void until the request expires.
    if (connected) void attach();
    else if (!nc.isClosed()) renewInbox();
  };
  connection.listeners.add(onConnection);
  void attach();

  return {
    /** The durable exists and a pull request is open. */
    ready: () => attached && connection.connected,
    /** Requests as many messages as there is room for, unless a request is open. */
    ask,
    /** Stops requesting. Messages in transit still reach `receive` until it resolves. */
    async stop() {
      stopping.abort();
      clearInterval(watchdog);
      connection.listeners.delete(onConnection);
      attached = false;
      if (connection.connected) await withTimeout(1_000, subscription.drain());
      subscription.unsubscribe();
    },
  };
};

/**
 * If a request crossed accounts, nats-server treats a message without body and headers as the last reply. Such a message, which Herald
 * never publishes, ends a pull request early, and JetStream does not notice.
 */
const endsReply = (msg: Msg): boolean => msg.data.length === 0 && msg.headers === undefined; // reading headers parses them

/** Texts of a 409 after which no server handles the request. */
const lost = /consumer deleted|consumer is push based|leadership change|server shutdown|stream deleted/i;
