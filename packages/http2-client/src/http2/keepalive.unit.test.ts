import { expect, test } from "vitest";
import { createLiveness } from "./keepalive.ts";

const limits = { pingIntervalMs: 60_000, pingTimeoutMs: 50, idleTimeoutMs: 60_000 };

/** A connection that writes every PING. */
const connection = () => {
  const told: string[] = [];
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const liveness = createLiveness({
    limits,
    ping: () => told.push("ping") > 0,
    idleSince: () => undefined,
    dead: () => {
      told.push("dead");
      resolve();
    },
    idle: () => told.push("idle"),
    cleared: () => told.push("cleared"),
  });
  return { liveness, told, died };
};

/** Nothing of this process runs for so long. */
const stall = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

test("a peer that does not answer is dead", async () => {
  const { liveness, told, died } = connection();
  liveness.doubt();
  expect(liveness.suspect()).toBe(true);
  await died;
  liveness.stop();
  expect(told).toEqual(["ping", "dead"]);
});

test("a stall of our own process is no silence of the peer's: what has arrived is read first", async () => {
  const { liveness, told } = connection();
  // From here on timers come first, then sockets, then immediates.
  await new Promise(setImmediate);
  liveness.doubt();
  const answered = new Promise<void>((resolve) =>
    setImmediate(() => {
      liveness.alive();
      resolve();
    }),
  );
  stall(limits.pingTimeoutMs * 3);
  await answered;
  liveness.stop();
  expect(told).toEqual(["ping", "cleared"]);
  expect(liveness.suspect()).toBe(false);
});

test("one PING at a time is asked", () => {
  const { liveness, told } = connection();
  liveness.doubt();
  liveness.doubt();
  liveness.alive();
  liveness.doubt();
  liveness.stop();
  expect(told).toEqual(["ping", "cleared", "ping"]);
});
