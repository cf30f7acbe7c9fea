import { closeBus, connectBus, handleRequest, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  defineRequest,
  newDeviceId,
  newNotificationId,
  openRequests,
  projectRequests,
} from "@herald/contracts";
import { currentRequestId, HeraldError, withRequestId } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type BusTest, newProject, startBusTest } from "./fixture.ts";

let t: BusTest;
let answering: RequestListener[] = [];
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(async () => {
  await Promise.all(answering.map((one) => one.stop()));
  answering = [];
  t.logged.length = 0;
});
afterAll(() => t.stop());

const answers: typeof handleRequest = (...args) => {
  const started = handleRequest(...args);
  answering.push(started);
  return started;
};
const countOpens = () => ({ projectId: newProject(), notificationIds: [newNotificationId(new Date())] });

describe("sendRequest", () => {
  test("returns the service's answer and passes the request id on", async () => {
    answers(t.bus, openRequests.count, async ({ notificationIds }, { requestId }) => {
      expect(currentRequestId()).toBe(requestId);
      return { counts: { [requestId ?? "none"]: notificationIds.length } };
    });
    expect(await withRequestId("request-1", () => sendRequest(t.bus, openRequests.count, countOpens()))).toEqual({
      counts: { "request-1": 1 },
    });
  });

  test("is handled by one of several replicas", async () => {
    const replica = await connectBus({ url: t.broker.url, name: "replica", log: t.log });
    const calls = { one: 0, two: 0 };
    answers(t.bus, openRequests.count, async () => ({ counts: { n: ++calls.one } }));
    answers(replica, openRequests.count, async () => ({ counts: { n: ++calls.two } }));
    let asked = 0;
    await eventually(async () => {
      await Promise.all(Array.from({ length: 20 }, () => sendRequest(t.bus, openRequests.count, countOpens())));
      asked += 20;
      expect(Math.min(calls.one, calls.two)).toBeGreaterThan(0);
    });
    expect(calls.one + calls.two).toBe(asked);
    await closeBus(replica);
  });

  test("throws service-unavailable when no service listens", async () => {
    await expect(sendRequest(t.bus, projectRequests.get, { projectId: newProject() })).rejects.toMatchObject({
      code: "service-unavailable",
      messages: ["registry does not answer"],
    });
  });

  test("throws service-unavailable when the reply takes too long", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answers(t.bus, openRequests.count, async () => {
      await promise;
      return { counts: {} };
    });
    await expect(sendRequest(t.bus, openRequests.count, countOpens(), { timeoutMs: 50 })).rejects.toMatchObject({
      code: "service-unavailable",
    });
    resolve();
  });

  test("throws the handler's HeraldError unchanged", async () => {
    answers(t.bus, openRequests.count, async () => {
      throw new HeraldError("notification-not-found", ["first", "second"], { retryAfterSeconds: 7 });
    });
    await expect(sendRequest(t.bus, openRequests.count, countOpens())).rejects.toMatchObject({
      name: "HeraldError",
      code: "notification-not-found",
      messages: ["first", "second"],
      retryAfterSeconds: 7,
    });
  });

  test("throws internal for any other error, which only the handler's side logs", async () => {
    answers(t.bus, openRequests.count, async () => {
      throw new Error("password=hunter2");
    });
    const thrown = await sendRequest(t.bus, openRequests.count, countOpens()).catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: "internal" });
    expect(JSON.stringify([thrown, String(thrown)])).not.toContain("hunter2");
    expect(t.logged.find(({ level }) => level === "error")).toMatchObject({ request: "analytics.opens.count" });
  });

  test("throws internal for an answer that does not match the contract, and does not send it", async () => {
    answers(t.bus, openRequests.count, async () => ({ counts: { n: -1 } }));
    await expect(sendRequest(t.bus, openRequests.count, countOpens())).rejects.toMatchObject({ code: "internal" });
  });

  test("sends a long answer as it is only if its contract's own check finds it plain: the schema decides on any other", async () => {
    const device = { id: newDeviceId(new Date()), token: "ab12", tokenAt: 1 };
    const plain = { sends: [{ batches: [{ platform: "ios" as const, devices: [device] }], unmatched: [] }] };
    const more = {
      sends: [{ batches: [{ platform: "ios" as const, devices: [{ ...device, more: 1 }] }], unmatched: [] }],
    };
    const wrong = {
      sends: [{ batches: [{ platform: "ios" as const, devices: [{ ...device, tokenAt: 1.5 }] }], unmatched: [] }],
    };
    const given = [plain, more, wrong];
    answers(t.bus, audienceRequests.resolve, async () => given.shift() ?? plain);
    const resolve = () =>
      sendRequest(t.bus, audienceRequests.resolve, {
        projectId: newProject(),
        sends: [{ targets: [`device:${device.id}`] }],
        limit: 1,
      });
    expect(await resolve()).toEqual(plain);
    expect(await resolve()).toEqual(plain);
    await expect(resolve()).rejects.toMatchObject({ code: "internal" });
  });

  test("receives answers larger than a message, also many at once", async () => {
    const Large = defineRequest("analytics.test.large", { of: z.string() }, z.string());
    const count = 1_200_000;
    answers(t.bus, Large, async ({ of }) => of.repeat(count));
    const asked = ["a", "ä", '"'].map(async (of) => ({
      of,
      answer: await sendRequest(t.bus, Large, { of }, { timeoutMs: 30_000 }),
    }));
    for (const { of, answer } of await Promise.all(asked)) expect(answer === of.repeat(count), of).toBe(true);
  });

  test("refuses an answer that is too large for memory and says what to do", async () => {
    const Huge = defineRequest("analytics.test.huge", {}, z.string());
    answers(t.bus, Huge, async () => "x".repeat(17_000_000));
    await expect(sendRequest(t.bus, Huge, {}, { timeoutMs: 30_000 })).rejects.toMatchObject({
      code: "validation-failed",
      messages: [expect.stringContaining("per_page: ")],
    });
  });

  test("refuses a request that does not match the contract", async () => {
    await expect(
      sendRequest(t.bus, openRequests.count, { ...countOpens(), notificationIds: [] }),
    ).rejects.toMatchObject({
      name: "ZodError",
    });
  });
});

describe("handleRequest", () => {
  const raw = async (body: string | Uint8Array) =>
    (await t.raw.nc.request(openRequests.count.subject, body, { timeout: 2_000 })).json();

  test.each([
    ["not JSON", "}"],
    ["an empty body", ""],
    ["other JSON", "[1]"],
    ["a letter that is not UTF-8", Buffer.from(JSON.stringify({ ...countOpens(), extra: "\xe4" }), "latin1")],
  ])("%s is answered with schema", async (_, body) => {
    answers(t.bus, openRequests.count, async () => ({ counts: {} }));
    // The request comes from another connection and may reach the broker before the subscription.
    expect(await eventually(() => raw(body))).toMatchObject({ error: { code: "schema" } });
  });

  test("limits concurrent requests", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let inside = 0;
    let max = 0;
    answers(t.bus, openRequests.count, async () => {
      max = Math.max(max, ++inside);
      await released;
      inside--;
      return { counts: {} };
    });
    const asked = Array.from({ length: 300 }, () =>
      sendRequest(t.bus, openRequests.count, countOpens(), { timeoutMs: 10_000 }),
    );
    await eventually(() => expect(max).toBe(128));
    release();
    await Promise.all(asked);
    expect(max).toBe(128);
  });

  test("limits requests fairly between projects, and heavy ones separately", async () => {
    const Heavy = defineRequest("analytics.test.heavy", { projectId: z.string() }, z.null(), () => true);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const busy = newProject();
    let inside = 0;
    answers(t.bus, Heavy, async ({ projectId }) => {
      if (projectId !== busy) return null;
      inside++;
      await released;
      return null;
    });
    answers(t.bus, openRequests.count, async () => ({ counts: {} }));
    const asked = Array.from({ length: 40 }, () =>
      sendRequest(t.bus, Heavy, { projectId: busy }, { timeoutMs: 20_000 }),
    );
    await eventually(() => expect(inside).toBe(2));
    expect(await sendRequest(t.bus, Heavy, { projectId: newProject() })).toBeNull();
    expect(await sendRequest(t.bus, openRequests.count, { ...countOpens(), projectId: busy })).toEqual({ counts: {} });
    expect(inside).toBe(2);
    release();
    await Promise.all(asked);
  });

  test("drops expired requests and aborts running ones at their deadline", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const Heavy = defineRequest("analytics.test.late", { n: z.number() }, z.null(), () => true);
    const begun: number[] = [];
    const told: number[] = [];
    answers(t.bus, Heavy, async ({ n }, { signal }) => {
      begun.push(n);
      signal.addEventListener("abort", () => told.push(n));
      await released;
      return null;
    });
    const asked = Array.from({ length: 30 }, (_, n) =>
      sendRequest(t.bus, Heavy, { n }, { timeoutMs: 2_000 }).catch((error: unknown) => error),
    );
    for (const one of await Promise.all(asked)) expect(one).toMatchObject({ code: "service-unavailable" });
    await eventually(() => expect(told).toHaveLength(2));
    release();
    const after = sendRequest(t.bus, Heavy, { n: 99 });
    expect(await after).toBeNull();
    // Each deadline is a timer of its own, and those of the same millisecond end in no order.
    expect(new Set(begun)).toEqual(new Set([...told, 99]));
    expect(begun).toHaveLength(3);
  });

  test("finishes accepted requests on stop and accepts no more", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let taken = 0;
    const one = answers(t.bus, openRequests.count, async () => {
      taken++;
      await released;
      return { counts: { n: 1 } };
    });
    const asked = sendRequest(t.bus, openRequests.count, countOpens());
    await eventually(() => expect(taken).toBe(1));
    const stopped = one.stop();
    await eventually(() =>
      expect(sendRequest(t.bus, openRequests.count, countOpens())).rejects.toMatchObject({
        code: "service-unavailable",
      }),
    );
    release();
    expect(await asked).toEqual({ counts: { n: 1 } });
    await stopped;
  });
});
