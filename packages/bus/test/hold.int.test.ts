import { defineHandler, publish } from "@herald/bus";
import { ExpandV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, expandOf, messagesIn, newProject, shortenAckWait, startBusTest } from "./fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const durable = "registry-expand";
type Handle = Parameters<typeof defineHandler<typeof ExpandV1.schema>>[0]["handle"];
const onExpand = (handle: Handle, concurrency?: number) =>
  defineHandler({ durable, message: ExpandV1, handle, ...(concurrency === undefined ? {} : { concurrency }) });

const expand = async (projectId = newProject()) => {
  const data = expandOf(projectId);
  await publish(t.bus, ExpandV1, data, { id: `${data.notificationId}/0` });
  return data;
};
const info = () => t.raw.jsm.consumers.info("PUSH_CMD", durable);
const allSettled = () => eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0));

describe("an unavailable dependency", () => {
  test("holds and retries the message without using up deliveries", async () => {
    const ackWaitMs = 1_500;
    await shortenAckWait(t, "PUSH_CMD", durable, ackWaitMs);
    let unavailable = true;
    const counts: number[] = [];
    await t.handle(
      onExpand(async ({ deliveryCount }) => {
        counts.push(deliveryCount);
        if (unavailable) throw new HeraldError("database-unavailable", "the database is unavailable");
      }),
    );
    await expand();
    const began = Date.now();
    await eventually(() => expect(Date.now() - began).toBeGreaterThan(1.5 * ackWaitMs));
    expect(counts.length).toBeGreaterThan(1);
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
    unavailable = false;
    await allSettled();
    expect(new Set(counts)).toEqual(new Set([1]));
    expect(t.logged.find(({ msg }) => msg === "message settled")).toMatchObject({
      outcome: "acked",
      holds: counts.length - 1,
    });
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(0);
  });

  test("does not count blocked messages towards the concurrency: many others pass them", async () => {
    const stuck = newProject();
    const done: string[] = [];
    let unavailable = true;
    await t.handle(
      onExpand(async ({ data }) => {
        if (data.projectId === stuck && unavailable) throw new HeraldError("queue-full", "full");
        done.push(data.projectId);
      }, 2),
    );
    for (let n = 0; n < 200; n++) await expand(stuck);
    await eventually(async () => expect((await info()).num_ack_pending).toBe(200));
    const other = newProject();
    await expand(other);
    await eventually(() => expect(done).toEqual([other]));
    unavailable = false;
    await allSettled();
    expect(done).toHaveLength(201);
  });

  test("with a thousand blocked messages, new ones are handled, and the blocked ones soon after recovery", async () => {
    const stuck = newProject();
    const done: string[] = [];
    let unavailable = true;
    let tries = 0;
    await t.handle(
      onExpand(async ({ data }) => {
        await new Promise((resolve) => setImmediate(resolve));
        if (data.projectId !== stuck) done.push(data.projectId);
        else if (unavailable) {
          tries++;
          throw new HeraldError("database-unavailable", "unavailable");
        } else done.push(data.projectId);
      }, 4),
    );
    await Promise.all(Array.from({ length: 1_000 }, () => expand(stuck)));
    await eventually(async () => expect((await info()).num_ack_pending).toBe(1_000));
    const triesBefore = tries;
    const others = Array.from({ length: 50 }, () => newProject());
    for (const other of others) await expand(other);
    await eventually(() => expect(done.toSorted()).toEqual(others.toSorted()));
    expect(tries - triesBefore).toBeLessThan(1_000);
    unavailable = false;
    // The blocked messages' own retries are over a minute away: each success wakes others.
    await eventually(() => expect(done).toHaveLength(1_050), { timeoutMs: 40_000 });
    await allSettled();
  });

  test("would block all messages with a small max_ack_pending, so Herald's is large", async () => {
    const { config } = await info();
    expect(config.max_ack_pending).toBeGreaterThanOrEqual(1_000);
    await t.raw.jsm.consumers.update("PUSH_CMD", durable, { ...config, max_ack_pending: 10 });
    try {
      const stuck = newProject();
      const done: string[] = [];
      await t.handle(
        onExpand(async ({ data }) => {
          if (data.projectId === stuck) throw new HeraldError("queue-full", "full");
          done.push(data.projectId);
        }),
      );
      for (let n = 0; n < 10; n++) await expand(stuck);
      await eventually(async () => expect((await info()).num_ack_pending).toBe(10));
      const other = newProject();
      await expand(other);
      // The stream tells its consumers of a message after it has acked it.
      await eventually(async () => expect((await info()).num_pending).toBe(1));
      expect(done).toEqual([]);
      await t.raw.jsm.consumers.update("PUSH_CMD", durable, config);
      await eventually(() => expect(done).toEqual([other]));
    } finally {
      await t.raw.jsm.consumers.update("PUSH_CMD", durable, config);
    }
  });
});

describe("hold inside a handler", () => {
  test("retries only the failing step and releases its permit meanwhile", async () => {
    const stuck = newProject();
    const log: string[] = [];
    let full = true;
    await t.handle(
      onExpand(async ({ data, hold }) => {
        log.push(`begin ${data.projectId}`);
        const result = await hold(async () => {
          if (data.projectId === stuck && full) throw new HeraldError("queue-full", "full");
          return "published";
        });
        log.push(`${result} ${data.projectId}`);
      }, 1),
    );
    await expand(stuck);
    await eventually(() => expect(log).toEqual([`begin ${stuck}`]));
    const other = newProject();
    await expand(other);
    await eventually(() => expect(log).toEqual([`begin ${stuck}`, `begin ${other}`, `published ${other}`]));
    full = false;
    await allSettled();
    expect(log).toEqual([`begin ${stuck}`, `begin ${other}`, `published ${other}`, `published ${stuck}`]);
  });

  test("releases and reacquires one permit for several concurrent steps", async () => {
    const full = new Set(["a", "b"]);
    let inside = 0;
    let max = 0;
    const stuck = newProject();
    await t.handle(
      onExpand(async ({ data, hold }) => {
        if (data.projectId === stuck) {
          const piece = (name: string) =>
            hold(async () => {
              if (full.has(name)) throw new HeraldError("queue-full", "full");
            });
          await Promise.all([piece("a"), piece("b"), piece("c")]);
        }
        max = Math.max(max, ++inside);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside--;
      }, 1),
    );
    await expand(stuck);
    for (let n = 0; n < 10; n++) await expand();
    await eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(1));
    full.delete("a");
    for (let n = 0; n < 10; n++) await expand();
    await eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(1));
    full.delete("b");
    for (let n = 0; n < 10; n++) await expand();
    await allSettled();
    expect(max).toBe(1);
  });

  test("rethrows other errors, and unavailable ones when too many handlers wait", async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    let ready = false;
    void opened.then(() => {
      ready = true;
    });
    const thrown: unknown[] = [];
    await t.handle(
      onExpand(async ({ data, hold }) => {
        if (data.page === 1) throw new HeraldError("project-not-found", "gone");
        try {
          await hold(async () => {
            if (!ready) throw new HeraldError("queue-full", "full");
          });
        } catch (error) {
          thrown.push(error);
          throw error;
        }
      }),
    );
    for (let n = 0; n < 100; n++) await expand();
    await eventually(() => expect(thrown.length).toBeGreaterThanOrEqual(36));
    expect(thrown[0]).toMatchObject({ code: "queue-full" });
    open();
    await allSettled();
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(0);
  });
});

describe("memory", () => {
  test("is bounded: the consumer pulls large messages only while there is room", async () => {
    const payload = "x".repeat(512_000);
    const big = { ...expandOf(), targets: [payload] };
    for (let n = 0; n < 60; n++) {
      await jetstream(t.raw.nc).publish(ExpandV1.subject({ ...big, page: n }), JSON.stringify({ ...big, page: n }));
    }
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let running = 0;
    await t.handle(
      onExpand(async () => {
        running++;
        await released;
      }, 50),
    );
    await eventually(() => expect(running).toBeGreaterThanOrEqual(20));
    const { num_ack_pending: pulled } = await info();
    // 16 MiB hold 32 of these bodies.
    expect(pulled).toBeLessThanOrEqual(33);
    release();
    await allSettled();
  });
});
