import { closeBus, connectBus, handleRequest, type RequestListener, sendGroupedRequest } from "@herald/bus";
import { audienceRequests, defineRequest, newNotificationId, openRequests } from "@herald/contracts";
import { currentRequestId, HeraldError, withRequestId } from "@herald/kit";
import { eventually, faultyProxy } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type BusTest, newProject, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";

let t: BusTest;
let answering: RequestListener[] = [];
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(async () => {
  await Promise.all(answering.map((one) => one.stop()));
  answering = [];
});
afterAll(() => t.stop());

const answers: typeof handleRequest = (...args) => {
  const started = handleRequest(...args);
  answering.push(started);
  return started;
};
const request = () => ({ projectId: newProject(), notificationIds: [newNotificationId(new Date())] });
const all = <Result>(count: number, work: (index: number) => Promise<Result>): Promise<Result>[] =>
  Array.from({ length: count }, (_, index) => work(index));

/** Counts the request messages sent during `work`. */
const messagesOf = async (work: () => Promise<unknown>): Promise<number> => {
  let messages = 0;
  const seen = t.raw.nc.subscribe(openRequests.count.subject, { callback: () => void messages++ });
  await t.raw.nc.flush();
  await work();
  await t.raw.nc.flush();
  seen.unsubscribe();
  return messages;
};

test("a slow reply of a group, and the parts of a long one, reach a service with rights for single requests", async () => {
  const [registry, dispatch] = [await connectAs(t, "registry"), await connectAs(t, "dispatch")];
  const slow = Promise.withResolvers<void>();
  const long = Array.from({ length: 40 }, () => "x".repeat(60_000));
  const answering = handleRequest(registry, audienceRequests.resolve, async ({ limit }) => {
    if (limit === 2) await slow.promise;
    return { sends: [{ batches: [], unmatched: limit === 2 ? [] : long }] };
  });
  const ask = sendGroupedRequest(() => dispatch, audienceRequests.resolve);
  const projectId = newProject();
  const send = (limit: number) => ask({ projectId, sends: [{ targets: ["all"] }], limit });
  // The requests come from another connection than the responder's: the broker may not know it yet.
  await eventually(() => send(1));
  const [first, second] = [send(1), send(2)].map((one) => one.then(({ sends }) => sends[0]?.unmatched));
  const slowly = first?.finally(slow.resolve);
  expect(await Promise.all([slowly, second])).toEqual([long, []]);
  await answering.stop();
  for (const bus of [registry, dispatch]) await closeBus(bus);
});

describe("requests of the same moment", () => {
  test("share messages and keep their own answers and request ids", async () => {
    answers(t.bus, openRequests.count, async (_, { requestId }) => {
      expect(currentRequestId()).toBe(requestId);
      return { counts: { [requestId ?? "none"]: 1 } };
    });
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const messages = await messagesOf(async () => {
      const counts = await Promise.all(all(200, (at) => withRequestId(`request-${at}`, () => ask(request()))));
      for (const [at, answer] of counts.entries()) expect(answer).toEqual({ counts: { [`request-${at}`]: 1 } });
    });
    expect(messages).toBeLessThan(20);
  });

  test("fail alone: by a HeraldError, by any other error, and by the contract", async () => {
    const bad = [request(), request()];
    answers(t.bus, openRequests.count, async ({ projectId }) => {
      if (projectId === bad[0]?.projectId)
        throw new HeraldError("notification-not-found", ["first", "second"], { retryAfterSeconds: 7 });
      if (projectId === bad[1]?.projectId) throw new Error("password=hunter2");
      return { counts: {} };
    });
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const invalid = ask({ projectId: "none" as never, notificationIds: [] });
    const outcomes = await Promise.allSettled([
      ...all(20, () => ask(request())),
      ...bad.map((one) => ask(one)),
      invalid,
      ...all(20, () => ask(request())),
    ]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(40);
    const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(reasons[0]).toMatchObject({
      code: "notification-not-found",
      messages: ["first", "second"],
      retryAfterSeconds: 7,
    });
    expect(reasons[1]).toMatchObject({ code: "internal" });
    expect(JSON.stringify([reasons[1], String(reasons[1])])).not.toContain("hunter2");
    expect(reasons[2]).toHaveProperty("issues");
  });

  test("do not wait for a slow one", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = request();
    answers(t.bus, openRequests.count, async ({ projectId }) => {
      if (projectId === slow.projectId) await promise;
      return { counts: {} };
    });
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const first = ask(request());
    let isDone = false;
    const late = ask(slow).finally(() => {
      isDone = true;
    });
    await Promise.all([first, ...all(20, () => ask(request()))]);
    expect(isDone).toBe(false);
    resolve();
    await late;
  });

  test("receive several replies where one would be too large", async () => {
    const text = "x".repeat(40_000);
    answers(t.bus, openRequests.count, async () => ({ counts: { [text]: 1 } }));
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const found = await Promise.all(all(60, () => ask(request())));
    expect(found.every(({ counts }) => counts[text] === 1)).toBe(true);
  });

  test("fail at once when no service listens or the connection is lost", async () => {
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const unanswered = await Promise.allSettled(all(10, () => ask(request())));
    for (const outcome of unanswered) expect(outcome).toMatchObject({ reason: { code: "service-unavailable" } });

    const proxy = await faultyProxy(t.broker.url);
    const bus = await connectBus({ url: proxy.url, name: "cut", log: t.log });
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const { promise: never, resolve: end } = Promise.withResolvers<void>();
    const none = request();
    answers(t.bus, openRequests.count, async ({ projectId }) => {
      if (projectId === none.projectId) return { counts: {} };
      resolve();
      await never;
      return { counts: {} };
    });
    const askCut = sendGroupedRequest(() => bus, openRequests.count);
    // Wait until the broker knows the responder, because the requests come from another connection.
    await eventually(() => askCut(none));
    const lost = Promise.allSettled(all(10, () => askCut(request())));
    await asked;
    await proxy.cut();
    const outcomes = await lost;
    const late = await Promise.allSettled([askCut(request())]);
    end();
    for (const outcome of [...outcomes, ...late])
      expect(outcome).toMatchObject({ reason: { code: "bus-unavailable" } });
    await proxy.heal();
    await closeBus(bus);
    await proxy.stop();
  });

  test("are asked for alone if their replies are too large together; only one that is too large by itself gets the error", async () => {
    const Huge = defineRequest("analytics.test.huge", { bytes: z.number() }, z.string());
    answers(t.bus, Huge, async ({ bytes }) => "x".repeat(bytes));
    const ask = sendGroupedRequest(() => t.bus, Huge);
    const outcomes = await Promise.allSettled([1, 6e6, 6e6, 6e6, 17e6, 1].map((bytes) => ask({ bytes })));
    expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value.length : one.reason.code))).toEqual([
      1,
      6e6,
      6e6,
      6e6,
      "validation-failed",
      1,
    ]);
  });
});
