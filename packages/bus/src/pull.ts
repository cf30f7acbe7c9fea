import { setTimeout as sleep } from "node:timers/promises";
import type { DurableName, StreamName } from "@herald/contracts";
import { createInbox, type Msg, nanos } from "@nats-io/transport-node";
import { isMissing } from "./bus-error.ts";
import type { Connection } from "./connect.ts";
import { type Received, toReceived } from "./received-message.ts";
import { withTimeout } from "./with-timeout.ts";

export type Room = { readonly messages: number; readonly bytes: number };

export type Pulling = {
  /** The durable exists and is being asked for messages. */
  ready(): boolean;
  /** Asks for as many messages as there is room for, unless a request is open. */
  ask(): void;
  /** Asks for nothing more; messages that are on their way still reach `receive` until it resolves. */
  stop(): Promise<void>;
};

type PullOptions = {
  readonly stream: StreamName;
  readonly durable: DurableName;
  /** How much may be asked for now. */
  readonly room: () => Room;
  readonly receive: (received: Received) => void;
  /** The durable was found, with the ack wait that the broker has for it. */
  readonly attached: (ackWaitMs: number) => void;
};

/** A request is renewed after this even when nothing came. */
const expiresMs = 30_000;
/** The broker says so often that it still knows the request, for the price of one small message a second and durable. */
const heartbeatMs = 1_000;
/** So many looks without a word, and the broker is asked anew: its new leader knows nothing of what the old one was asked. */
const maxSilentChecks = 4;
/** A leader that is cut off does not answer, and within seconds there is another to ask. */
const attachTimeoutMs = 2_000;
const retryMs = { first: 100, longest: 2_000 };
/** Beyond the payload: subject, reply and what the broker counts. */
const overheadBytes = 8_192;

/**
 * Pulls a durable's messages as there is room for them, through reconnects, leader changes and a durable that is not there (yet).
 * Not the client's own loop, because that one bounds either messages or bytes, and keeps what it has fetched to itself, so that
 * nobody can signal that a message is being waited with.
 */
export const pull = (connection: Connection, options: PullOptions): Pulling => {
  const { nc, jsm, log } = connection;
  const { stream, durable, room, receive } = options;
  const api = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;
  const stopping = new AbortController();
  let request: { id: number; messages: number; left: number } | undefined;
  let requests = 0;
  let attached = false;
  let attaching = false;
  /** Counted in looks, not in time: a process that stalled has not read yet what was said meanwhile. */
  let silent = 0;

  const pause = (ms: number): Promise<undefined> =>
    sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);

  const ask = () => {
    if (!attached || request !== undefined || stopping.signal.aborted) return;
    const { messages, bytes } = room();
    // With less the broker could not deliver the largest message, and would say so at once, for ever.
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
          if (info === undefined) throw new Error("nobody answers for it");
          attached = connection.connected;
          if (attached) options.attached((info.config.ack_wait ?? 0) / 1e6);
        }
      } catch (error) {
        if (!isReported && isMissing(error))
          log.warn({ durable, stream }, "the durable does not exist yet, waiting for the bootstrap step to make it");
        else if (!isReported && connection.connected)
          log.warn({ err: error, durable }, "the durable cannot be read, trying again");
        isReported = true;
      }
      if (!attached) await pause(delay);
    }
    attaching = false;
    if (isReported && attached) log.info({ durable, stream }, "the durable is there");
    ask();
  };

  const onStatus = (msg: Msg) => {
    if (request === undefined || msg.subject !== `${inbox}.${request.id}`) return;
    const code = msg.headers?.code ?? 0;
    if (code === 100) return;
    const { left, messages } = request;
    request = undefined;
    // 408 and most of 409 end a request in the ordinary way; the rest says that the durable is not there to be asked.
    const ordinary = code === 408 || (code === 409 && !lost.test(msg.headers?.description ?? ""));
    if (!ordinary) detach();
    else if (code === 408 || left < messages) ask();
    else void pause(retryMs.first).then(ask);
  };

  const onMessage = (error: Error | null, msg: Msg, from: string) => {
    if (error) {
      log.error({ err: error, durable }, "messages are not received");
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
      // The client's reader ends with what a callback throws.
      callback: (error, msg) => {
        try {
          onMessage(error, msg, from);
        } catch (err) {
          log.error({ err, durable }, "a message could not be received");
        }
      },
    });
    return { inbox: from, subscription };
  };
  let { inbox, subscription } = listen();

  /** The broker drops a request that nobody listens to any more: it would give it messages that arrive nowhere. */
  const renewInbox = () => {
    subscription.drain().catch((err: unknown) => log.debug({ err, durable }, "an inbox is closed already"));
    ({ inbox, subscription } = listen());
    request = undefined;
  };

  const watchdog = setInterval(() => {
    if (request === undefined) {
      ask();
    } else if (connection.connected && ++silent > maxSilentChecks) {
      log.warn({ durable }, "the broker forgot a request, asking anew");
      detach();
    }
  }, heartbeatMs);

  const onConnection = (connected: boolean) => {
    attached = false;
    request = undefined;
    if (connected) void attach();
  };
  connection.listeners.add(onConnection);
  void attach();

  return {
    ready: () => attached && connection.connected,
    ask,
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
 * nats-server takes an answer without body and headers for the last one where the request crossed accounts. What is stored like that,
 * which no part of Herald does, ends a request in its middle, and JetStream does not notice.
 */
const endsReply = (msg: Msg): boolean => msg.data.length === 0 && msg.headers === undefined; // reading headers parses them

/** 409s after which the request has nobody to serve it. */
const lost = /consumer deleted|consumer is push based|leadership change|server shutdown|stream deleted/i;
