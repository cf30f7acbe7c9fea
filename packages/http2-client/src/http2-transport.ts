import { createBackoff } from "./backoff.ts";
import { createSendableCheck } from "./check-request.ts";
import { createEnding } from "./closing.ts";
import { openConnection } from "./http2/connection.ts";
import type { Connection, ConnectionEvents, Job } from "./http2/connection-types.ts";
import { createDeadlines } from "./http2/deadlines.ts";
import { createWaitingLine } from "./http2/request-queue.ts";
import type { TlsTickets } from "./tls-socket.ts";
import { type Transport, type TransportAnswer, type TransportOptions, transportDefaults } from "./transport.ts";

const FAILURES_UNTIL_DOWN = 3; // connects in a row, after which whoever waits is told instead of kept

/**
 * A transport of a few connections to one origin, opened when there is work and filled one after the other, so that
 * frames of many requests share a write.
 *
 * While the origin cannot be reached, attempts are spaced by a growing pause. After three in a row whoever waits gets
 * `unprocessed`, and until the next attempt is due so does whoever comes.
 */
export function createHttp2Transport(options: TransportOptions): Transport {
  if (!options.origin.startsWith("https://")) throw new TypeError("the origin must be https");
  const limits = { ...transportDefaults, ...defined(options) };
  const assertSendable = createSendableCheck();
  const tickets: TlsTickets = { last: undefined };
  const connections = new Set<Connection>();
  const line = createWaitingLine<Job>();
  const backoff = createBackoff({ firstMs: 100, maxMs: 10_000 });
  const deadlines = createDeadlines<Job>(limits.requestTimeoutMs, onDeadlines);
  let order = 0;
  let closing = false;
  let retry: NodeJS.Timeout | undefined;
  const ending = createEnding(() => connections.size === 0);

  const events: ConnectionEvents = {
    changed: pump,
    finished(job: Job, answer: TransportAnswer) {
      job.connection = undefined;
      if (answer.kind === "answered") backoff.succeeded();
      if (job.done) return;
      if (answer.kind === "unprocessed" && !closing && job.resends++ < limits.maxResends) line.putBack(job);
      else settle(job, answer);
    },
    closed(connection: Connection, served: boolean, reason: string) {
      connections.delete(connection);
      if (!served && !closing) backoff.failed(performance.now(), reason);
      if (backoff.failures() >= FAILURES_UNTIL_DOWN && !anyUsable()) giveUp(backoff.reason());
      pump();
      ending.ended();
    },
  };

  function settle(job: Job, answer: TransportAnswer): void {
    job.done = true;
    deadlines.remove(job);
    job.resolve(answer);
  }

  function giveUp(reason: string): void {
    for (let job = line.take(); job !== undefined; job = line.take()) settle(job, { kind: "unprocessed", reason });
  }

  function anyUsable(): boolean {
    for (const connection of connections) if (connection.usable()) return true;
    return false;
  }

  /** Writes what waits to where there is room, and opens a connection where there is not enough. */
  function pump(): void {
    if (line.size() === 0) return;
    for (const connection of connections) {
      for (let room = connection.room(); room > 0; room = connection.room()) {
        const job = line.take();
        if (job === undefined) return;
        write(job, connection);
      }
    }
    if (closing || line.size() === 0) return;
    const pause = backoff.nextAt() - performance.now();
    if (pause <= 0) open();
    else
      retry ??= setTimeout(() => {
        retry = undefined;
        pump();
      }, pause);
  }

  function write(job: Job, connection: Connection): void {
    try {
      connection.send(job);
      job.connection = connection;
    } catch (error) {
      // Checked before, so this is Node refusing a session that is ending.
      connection.drain();
      settle(job, { kind: "unprocessed", reason: error instanceof Error ? error.message : "the stream did not open" });
    }
  }

  /** One at a time: a further one only once the last is full, so that a burst does not open them all. */
  function open(): void {
    let usable = 0;
    for (const connection of connections) {
      if (connection.connecting()) return;
      if (connection.usable()) usable++;
    }
    // Those that are draining or under suspicion do not count, up to as many again.
    if (usable < limits.connections && connections.size < 2 * limits.connections)
      connections.add(openConnection(options, limits, events, tickets));
  }

  function onDeadlines(late: readonly Job[]): void {
    for (const job of late) {
      const { connection } = job;
      if (connection === undefined) {
        const reason = backoff.reason() || "no stream became free";
        settle(job, { kind: "unprocessed", reason: `${reason} (waited ${limits.requestTimeoutMs} ms)` });
      } else {
        settle(job, { kind: "unknown", reason: `no answer within ${limits.requestTimeoutMs} ms` });
        connection.abandon(job);
      }
    }
    line.removeDone();
    pump();
  }

  return {
    send(request) {
      return new Promise((resolve) => {
        assertSendable(request);
        if (closing) return resolve({ kind: "unprocessed", reason: "the transport is closed" });
        if (backoff.failures() >= FAILURES_UNTIL_DOWN && performance.now() < backoff.nextAt() && !anyUsable())
          return resolve({ kind: "unprocessed", reason: backoff.reason() });
        const job: Job = {
          request,
          order: order++,
          resolve,
          done: false,
          resends: 0,
          connection: undefined,
          streamId: 0,
          group: undefined,
        };
        deadlines.add(job);
        line.add(job);
        pump();
      });
    },
    async close() {
      if (!closing) {
        closing = true;
        giveUp("the transport is closed");
        for (const connection of connections) connection.drain();
      }
      await ending.within(limits.closeTimeoutMs, () => {
        for (const connection of connections) connection.destroy("closed before its answer");
      });
      clearTimeout(retry);
      deadlines.stop();
    },
  };
}

/** Without the keys whose value is undefined, so that they do not hide a default. */
function defined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
