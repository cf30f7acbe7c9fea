import { newNotificationIds } from "@herald/contracts";
import { eventually, readPublished, readStream } from "@herald/testing";
import { Collection } from "mongodb";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

const { dispatch, answers, sendsTo, groupOf, put, known, accept, acceptAll, sendsOf, eventsOf, pushesTo } =
  useSendGroups();

describe("sends of a group", () => {
  test("are each pushed once, counted and published, and the stream is empty then", async () => {
    const projectId = await dispatch().project();
    const some = devices(3);
    const ids = await acceptAll(sendsOf(projectId, some));
    for (const [at, id] of ids.entries()) {
      expect(await dispatch().final(projectId, id)).toMatchObject({
        status: "completed",
        counts: { devices: 1, accepted: 1 },
        unmatched: [],
      });
      expect(await dispatch().rows(id)).toMatchObject([{ _id: `${id}/0/0`, state: "final", starts: 1 }]);
      expect(await dispatch().deliveries(projectId, id)).toMatchObject([
        { device_id: some[at]?.id, status: "accepted", attempts: 1, possible_repeat: false },
      ]);
    }
    expect(pushesTo(some)).toEqual([1, 1, 1]);
    expect(answers().asked).toEqual([3]);
    await eventually(async () => {
      for (const id of ids)
        expect(await eventsOf(projectId, id)).toEqual([
          "notification.accepted",
          "delivery.accepted",
          "notification.completed",
        ]);
      expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]);
    });
    // Events are published before the message is acked, so no document contains them.
    for (const id of ids) for (const row of await dispatch().rows(id)) expect(row).not.toHaveProperty("outbox");
  });

  test("are stored in one command, and ended and published together", async () => {
    const projectId = await dispatch().project();
    const writes = vi.spyOn(Collection.prototype, "bulkWrite"); // which `insertMany` calls, too
    // Ends of one moment are equal.
    dispatch().stopClock();
    onTestFinished(() => {
      dispatch().startClock();
      vi.restoreAllMocks();
    });
    const ids = await acceptAll(sendsOf(projectId, devices(64)));
    for (const id of ids) await dispatch().final(projectId, id);
    const commands = writes.mock.contexts.flatMap((collection, at) => {
      const operations = writes.mock.calls[at]?.[0] ?? [];
      return (collection as Collection).collectionName === "notifications" ? [operations] : [];
    });
    const [inserts, updates] = [true, false].map((isInsert) =>
      commands.filter(([first]) => first && "insertOne" in first === isInsert),
    );
    expect(inserts?.map(({ length }) => length)).toEqual([64]);
    // Pushes end in several turns of the event loop, and what ends while a command runs shares the next one.
    expect(updates?.length).toBeLessThan(64);
    expect(updates?.every(({ length }) => length === 1)).toBe(true);
    const ended = updates?.flat().flatMap((operation) => {
      const { filter } = "updateMany" in operation ? operation.updateMany : Object(operation).updateOne;
      return filter._id.$in;
    });
    expect(new Set(ended)).toEqual(new Set(ids));
    await eventually(async () => {
      const messages = await readStream(dispatch().broker, "PUSH_EVENTS", `push.evt.v1.${projectId}.notification.>`);
      const stored = messages.map(({ body }) => body).join();
      for (const id of ids) expect(stored).toContain(id);
      expect(messages.length).toBeLessThan(64);
    });
  });

  test("have events with the request and the trace that each is of", async () => {
    const projectId = await dispatch().project();
    const origins = [
      { requestId: "request-a", traceparent: `00-${"a".repeat(32)}-${"a".repeat(16)}-00` },
      { requestId: "request-b", traceparent: `00-${"b".repeat(32)}-${"b".repeat(16)}-00` },
    ];
    const sends = sendsOf(projectId, devices(2)).map((send, at) => ({ ...send, origin: origins[at] ?? {} }));
    const ids = await acceptAll(sends);
    await eventually(async () => {
      const events = await readPublished(dispatch().broker, `push.evt.v1.${projectId}.>`);
      const named = events.map(({ headers, body }) => [
        ids.findIndex((id) => body.includes(id)),
        headers["Herald-Request-Id"],
        headers.traceparent,
      ]);
      const expected = origins.flatMap(({ requestId, traceparent }, at) => Array(3).fill([at, requestId, traceparent]));
      expect(named.toSorted()).toEqual(expected);
    });
  });

  test("without devices, with too many, or that fail, leave the others alone", async () => {
    const projectId = await dispatch().project();
    const [good, dead] = [device("9000d"), device("de")];
    known("token:good", [good]);
    known("token:dead", [dead]);
    answers().registry.set("metadata:plan=pro", "large");
    dispatch().simulators.script([{ provider: "apns", tokenPrefix: "de", status: 410, reason: "Unregistered" }]);
    const [first, unmatched, large, gone] = await accept(
      projectId,
      "token:good",
      "token:unknown",
      "metadata:plan=pro",
      "token:dead",
    );
    expect(await dispatch().final(projectId, first ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
    expect(await dispatch().final(projectId, unmatched ?? "ntf_")).toMatchObject({
      status: "completed",
      counts: { devices: 0 },
      unmatched: ["token:unknown"],
    });
    expect(await dispatch().final(projectId, gone ?? "ntf_")).toMatchObject({
      counts: { devices: 1, failed: 1 },
      failures: { unregistered: 1 },
    });
    await eventually(async () =>
      expect(await eventsOf(projectId, gone ?? "ntf_")).toEqual(
        expect.arrayContaining(["notification.accepted", "delivery.failed", "notification.completed"]),
      ),
    );
    expect(await dispatch().expansion(projectId, large ?? "ntf_")).toMatchObject({ targets: ["metadata:plan=pro"] });
  });

  test("go to all platforms of their audience and end once", async () => {
    const projectId = await dispatch().project();
    answers().registry.set("token:both", { devices: devices(2) });
    answers().registry.set("token:web", { platform: "web", devices: devices(1) });
    const group = groupOf(sendsTo(projectId, ["token:both"]));
    const [send] = group.sends;
    if (send) send.content.targets = ["token:both", "token:web"];
    await put(group);
    // The project has no settings for Web Push.
    expect(await dispatch().final(projectId, group.ids[0] ?? "ntf_")).toMatchObject({
      counts: { devices: 3, accepted: 2, failed: 1 },
      failures: { "provider-not-configured": 1 },
    });
  });

  test("wait for a provider that is in trouble without keeping the others of the group", async () => {
    const projectId = await dispatch().project();
    const [good, slow] = [device(), device("503")];
    known("token:good", [good]);
    known("token:slow", [slow]);
    dispatch().simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);
    const [first, second] = await accept(projectId, "token:good", "token:slow");
    await dispatch().final(projectId, first ?? "ntf_");
    await eventually(async () => expect(await dispatch().rows(second ?? "ntf_")).toHaveLength(2));
    dispatch().pass(60_000);
    expect(await dispatch().final(projectId, second ?? "ntf_")).toMatchObject({ counts: { devices: 1, accepted: 1 } });
    expect(pushesTo([good, slow])).toEqual([1, 1]);
  });
});

describe("a notification that is accepted and not yet stored", () => {
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answers().withhold(promise);
    return resolve;
  };

  test("is found by its project alone", async () => {
    const projectId = await dispatch().project();
    const release = hold();
    const [id] = await accept(projectId, "token:unknown");
    expect(await dispatch().get(projectId, id ?? "ntf_")).toMatchObject({ id, status: "accepted" });
    const other = await dispatch().project();
    await expect(dispatch().get(other, id ?? "ntf_")).rejects.toMatchObject({ code: "notification-not-found" });
    const [stranger] = newNotificationIds(new Date(), 1);
    await expect(dispatch().get(projectId, stranger ?? "ntf_")).rejects.toMatchObject({
      code: "notification-not-found",
    });
    release();
    await dispatch().final(projectId, id ?? "ntf_");
  });

  test("can be cancelled: nothing is pushed, and the others of its group are", async () => {
    const projectId = await dispatch().project();
    const [one, two] = [device(), device()];
    known("token:one", [one]);
    known("token:two", [two]);
    const release = hold();
    const [cancelled, other] = await accept(projectId, "token:one", "token:two");
    expect(await dispatch().cancel(projectId, cancelled ?? "ntf_")).toMatchObject({ status: "cancelled" });
    release();
    expect(await dispatch().final(projectId, other ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
    await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
    expect(pushesTo([one, two])).toEqual([0, 1]);
    expect(await dispatch().get(projectId, cancelled ?? "ntf_")).toMatchObject({
      status: "cancelled",
      counts: { devices: 0 },
    });
  });
});
