import type { Socket } from "node:net";
import { type Dial, socketErrorText } from "@herald/kit";
import { createBackoff } from "./backoff.ts";
import { type Connection, type ConnectionEvents, openConnection } from "./http2/connection.ts";
import { createDeadlines, createRequestQueue } from "./http2/request-queue.ts";
import type { PendingRequest } from "./http2/wire.ts";
import type { TlsTickets } from "./tls-socket.ts";
import {
  createClosing,
  createRequestCheck,
  limitsOf,
  type Transport,
  type TransportAnswer,
  type TransportOptions,
} from "./transport.ts";

const failuresUntilDown = 3; // consecutive failed connects, after which requests end as `unprocessed` instead of waiting

/**
 * A transport with a few connections to one origin. It opens them when there is work and fills one before it uses the next,
 * so that frames of many requests share a write.
 *
 * While the origin cannot be reached, attempts are spaced by a growing pause. After three failures in a row, waiting requests end as
 * `unprocessed`, and so do new ones until the next attempt is due.
 */
export function createHttp2Transport(options: TransportOptions): Transport {
  if (!options.origin.startsWith("https://")) throw new TypeError("the origin must be https");
  const limits = limitsOf(options);
  const assertSendable = createRequestCheck();
  const tickets: TlsTickets = { last: undefined };
  const connections = new Set<Connection>();
  const queue = createRequestQueue<PendingRequest>();
  const backoff = createBackoff({ firstMs: 100, maxMs: 10_000 });
  const deadlines = createDeadlines<PendingRequest>(limits.requestTimeoutMs, onDeadlines);
  let order = 0;
  let closing = false;
  let retry: NodeJS.Timeout | undefined;
  /** Ends the dialling of the next connection. */
  let dialling: AbortController | undefined;
  const closed = createClosing(() => connections.size === 0 && dialling === undefined);

  const events: ConnectionEvents = {
    changed: pump,
    finished(pending: PendingRequest, answer: TransportAnswer) {
      pending.connection = undefined;
      if (answer.kind === "answered" && backoff.failures > 0) backoff.succeeded();
      if (pending.done) return;
      if (answer.kind === "unprocessed" && !closing && pending.resends++ < limits.maxResends) queue.requeue(pending);
      else settle(pending, answer);
    },
    closed(connection: Connection, served: boolean, reason: string) {
      connections.delete(connection);
      ended(served ? undefined : reason);
    },
  };

  /** A connection ended or could not be opened. `failure`: the reason, if it answered nothing. */
  function ended(failure: string | undefined): void {
    if (failure !== undefined && !closing) backoff.failed(performance.now(), failure);
    if (backoff.failures >= failuresUntilDown && !anyUsable()) giveUp(backoff.reason);
    pump();
    closed.check();
  }

  function settle(pending: PendingRequest, answer: TransportAnswer): void {
    pending.done = true;
    deadlines.remove(pending);
    pending.resolve(answer);
  }

  function giveUp(reason: string): void {
    for (let pending = queue.take(); pending !== undefined; pending = queue.take())
      settle(pending, { kind: "unprocessed", reason });
  }

  function anyUsable(): boolean {
    for (const connection of connections) if (connection.usable()) return true;
    return false;
  }

  /** Writes waiting requests to connections with room, and opens another connection if there is not enough room. */
  function pump(): void {
    if (queue.size() === 0) return;
    for (const connection of connections) {
      for (let room = connection.room(); room > 0; room = connection.room()) {
        const pending = queue.take();
        if (pending === undefined) return;
        connection.send(pending);
        pending.connection = connection;
      }
    }
    if (closing || queue.size() === 0) return;
    const pause = backoff.nextAt - performance.now();
    if (pause <= 0) open();
    else
      retry ??= setTimeout(() => {
        retry = undefined;
        pump();
      }, pause);
  }

  /** Opens one connection at a time, the next only when the last is full, so that a burst does not open all of them. */
  function open(): void {
    if (dialling) return;
    let usable = 0;
    for (const connection of connections) {
      if (connection.connecting()) return;
      if (connection.usable()) usable++;
    }
    // Draining and suspect connections do not count, but the total is at most twice the limit.
    if (usable >= limits.connections || connections.size >= 2 * limits.connections) return;
    if (options.dial) dialThenOpen(options.dial);
    else openOn(undefined);
  }

  function openOn(tunnel: Socket | undefined): void {
    connections.add(openConnection(options, limits, events, tickets, tunnel));
  }

  function dialThenOpen(dial: Dial): void {
    const own = new AbortController();
    dialling = own;
    dial(own.signal).then(
      (tunnel) => {
        dialling = undefined;
        if (closing) tunnel.destroy();
        else openOn(tunnel);
        closed.check();
      },
      (error: Error) => {
        dialling = undefined;
        ended(socketErrorText(error));
      },
    );
  }

  function onDeadlines(late: readonly PendingRequest[]): void {
    for (const pending of late) {
      const { connection } = pending;
      if (connection === undefined) {
        const reason = backoff.reason || "no stream became free";
        settle(pending, { kind: "unprocessed", reason: `${reason} (waited ${limits.requestTimeoutMs} ms)` });
      } else {
        settle(pending, { kind: "unknown", reason: `no answer within ${limits.requestTimeoutMs} ms` });
        connection.abandon(pending);
      }
    }
    queue.removeDone();
    pump();
  }

  return {
    send(request) {
      return new Promise((resolve) => {
        assertSendable(request);
        if (closing) return resolve({ kind: "unprocessed", reason: "the transport is closed" });
        if (backoff.failures >= failuresUntilDown && performance.now() < backoff.nextAt && !anyUsable())
          return resolve({ kind: "unprocessed", reason: backoff.reason });
        const pending: PendingRequest = {
          request,
          order: order++,
          resolve,
          done: false,
          resends: 0,
          connection: undefined,
          streamId: 0,
          group: undefined,
        };
        deadlines.add(pending);
        queue.add(pending);
        pump();
      });
    },
    async close() {
      if (!closing) {
        closing = true;
        giveUp(backoff.reason || "the transport is closed");
        for (const connection of connections) connection.drain();
        dialling?.abort(new Error("closed while connecting"));
      }
      await closed.within(limits.closeTimeoutMs, () => {
        for (const connection of connections) connection.destroy("closed before its answer");
      });
      clearTimeout(retry);
      deadlines.stop();
    },
  };
}
