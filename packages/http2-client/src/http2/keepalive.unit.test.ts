import { expect, test } from "vitest";
import { createKeepalive } from "./keepalive.ts";

const limits = { pingIntervalMs: 60_000, pingTimeoutMs: 50, idleTimeoutMs: 60_000 };

/** A connection that writes every PING. */
const connection = () => {
  const events: string[] = [];
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const keepalive = createKeepalive({
    limits,
    sendPing: () => events.push("ping") > 0,
    idleSince: () => undefined,
    onDead: () => {
      events.push("dead");
      resolve();
    },
    onIdle: () => events.push("idle"),
  });
  return { keepalive, events, died };
};

/** Blocks the event loop for `ms`. */
const stall = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

test("a peer that does not answer is dead", async () => {
  const { keepalive, events, died } = connection();
  keepalive.probe();
  expect(keepalive.isSuspect).toBe(true);
  await died;
  keepalive.stop();
  expect(events).toEqual(["ping", "dead"]);
});

test("a stall of this process does not count against the peer: received frames are read first", async () => {
  const { keepalive, events } = connection();
  // After an immediate, the event loop runs timers first, then sockets, then immediates.
  await new Promise(setImmediate);
  keepalive.probe();
  const answered = new Promise<void>((resolve) =>
    setImmediate(() => {
      keepalive.onPong();
      resolve();
    }),
  );
  stall(limits.pingTimeoutMs * 3);
  await answered;
  keepalive.stop();
  expect(events).toEqual(["ping"]);
  expect(keepalive.isSuspect).toBe(false);
});

test("one PING at a time is asked", () => {
  const { keepalive, events } = connection();
  keepalive.probe();
  keepalive.probe();
  keepalive.onPong();
  keepalive.probe();
  keepalive.stop();
  expect(events).toEqual(["ping", "ping"]);
});
