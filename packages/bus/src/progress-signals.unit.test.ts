import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createProgress } from "./received-message.ts";

const ackWaitMs = 6_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

type Line = Parameters<typeof createProgress>[0];

/** A durable's messages, and the times in ms at which the broker received a signal for each. */
const start = () => {
  const connection: Line = { connected: true, listeners: new Set() };
  const tasks = new Map<string, { signalledAt: number; settled: boolean; received: { working(): void } }>();
  const begun = performance.now();
  const heard = new Map<string, number[]>();
  const progress = createProgress(connection, tasks);
  progress.follow(ackWaitMs);
  return {
    connection,
    progress,
    heard,
    receive(id: string) {
      const signals: number[] = [];
      heard.set(id, signals);
      const working = () => void signals.push(performance.now() - begun);
      tasks.set(id, { received: { working }, settled: false, signalledAt: performance.now() });
    },
    settle: (id: string) => tasks.delete(id),
  };
};

test("a message that is settled within a third of the ack wait gets no progress signal", () => {
  const { receive, settle, heard, progress } = start();
  for (let count = 0; count < 100; count++) {
    receive(`${count}`);
    vi.advanceTimersByTime(1_900);
    settle(`${count}`);
  }
  expect([...heard.values()].flat()).toEqual([]);
  progress.stop();
});

test("a longer one gets a signal at least every half ack wait", () => {
  const { receive, heard, progress } = start();
  for (let at = 0; at < 1_000; at += 90) {
    receive(`${at}`);
    vi.advanceTimersByTime(90);
  }
  vi.advanceTimersByTime(60_000);
  for (const [came, signals] of heard) {
    const gaps = signals.map((at, index) => at - (signals[index - 1] ?? Number(came)));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(ackWaitMs / 2);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(ackWaitMs / 3);
    expect(signals.length).toBeGreaterThanOrEqual(20);
  }
  progress.stop();
});

test("signals stop with the connection, and all are sent when it is back", () => {
  const { receive, heard, connection, progress } = start();
  receive("a");
  connection.connected = false;
  vi.advanceTimersByTime(20_000);
  expect(heard.get("a")).toEqual([]);
  connection.connected = true;
  receive("b");
  for (const listener of connection.listeners) listener(true);
  expect([heard.get("a"), heard.get("b")]).toEqual([[20_000], [20_000]]);
  progress.stop();
  expect(connection.listeners.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
