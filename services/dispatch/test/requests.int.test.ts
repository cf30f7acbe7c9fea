import { openBucket, sendRequest } from "@herald/bus";
import {
  type Delivery,
  deliveryRequests,
  newNotificationId,
  newProjectId,
  notificationRequests,
  type PageRequest,
  ProvidersRecord,
  projectProvidersKey,
  providerRequests,
  settingsFingerprint,
} from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const page = (number: number, perPage: number): PageRequest => ({ by: "page", page: number, perPage });

test("an accepted id is found before it is in the database, and no other", async () => {
  const { project, send, get, expansion, broker } = dispatch;
  const projectId = await project();
  const hands = await operateBroker(broker);
  const resume = await hands.pause("PUSH_CMD", "dispatch-start");
  try {
    const id = await send(projectId, {}, { title: "Early" });
    const found = await get(projectId, id);
    expect(found).toMatchObject({ id, title: "Early", status: "accepted", counts: { devices: 0, pending: 0 } });
    const missing = { code: "notification-not-found" };
    await expect(get(projectId, newNotificationId(new Date()))).rejects.toMatchObject(missing);
    await expect(get(await project(), id)).rejects.toMatchObject(missing);
    await resume();
    await expansion(projectId, id);
  } finally {
    await resume();
    await hands.close();
  }
});

test("notifications are listed oldest first, by page and by key", async () => {
  const { project, send, expansion, bus } = dispatch;
  const projectId = await project();
  const ids: string[] = [];
  for (const title of ["a", "b", "c"]) {
    const id = await send(projectId, {}, { title });
    await expansion(projectId, id);
    ids.push(id);
  }
  const list = (request: PageRequest) => sendRequest(bus, notificationRequests.list, { projectId, page: request });
  expect(await list(page(1, 2))).toMatchObject({
    data: [{ id: ids[0], title: "a" }, { id: ids[1] }],
    pagination: { count: 3, page: 1, pages: 2, from: 1, to: 2, last: 2 },
  });
  const first = await list({ by: "key", after: "", perPage: 2 });
  const next = "next" in first ? first.next : null;
  expect(await list({ by: "key", after: next ?? "", perPage: 2 })).toEqual({
    data: [expect.objectContaining({ id: ids[2] })],
    next: null,
  });
});

describe("deliveries", () => {
  test("are one row a device, by page, by key and by status, whatever row they are in", async () => {
    const { project, send, partition, simulators, rows, bus } = dispatch;
    const projectId = await project();
    const id = await send(projectId);
    simulators.script([
      { provider: "apns", tokenPrefix: "413", status: 413 },
      // Long enough that a slow machine still finds these devices waiting.
      { provider: "apns", tokenPrefix: "500", status: 500, headers: { "retry-after": "600" } },
    ]);
    const good = devices(7);
    const bad = devices(2, "413");
    const slow = devices(3, "500");
    await partition(projectId, id, [[...good.slice(0, 4), ...bad], [], [...good.slice(4), ...slow]]);
    await eventually(async () =>
      expect((await rows(id)).map(({ state }) => state).sort()).toEqual(["final", "final", "final", "waiting"]),
    );

    const list = (request: PageRequest, status?: Delivery["status"]) =>
      sendRequest(bus, deliveryRequests.list, {
        projectId,
        notificationId: id,
        page: request,
        ...(status ? { status } : {}),
      });
    const all = await list(page(1, 100));
    expect(all).toMatchObject({ pagination: { count: 12, pages: 1, from: 1, to: 12 } });
    expect(new Set(all.data.map(({ device_id }) => device_id)).size).toBe(12);

    const byPages = await Promise.all([1, 2, 3].map((number) => list(page(number, 5))));
    expect(byPages.flatMap(({ data }) => data)).toEqual(all.data);
    expect(await list(page(9, 5))).toMatchObject({ data: [], pagination: { count: 12, from: 0, to: 0 } });

    const walked: Delivery[] = [];
    for (let after: string | null = ""; after !== null; ) {
      const { data, ...rest }: Awaited<ReturnType<typeof list>> = await list({ by: "key", after, perPage: 5 });
      walked.push(...data);
      after = "next" in rest ? rest.next : null;
    }
    expect(walked).toEqual(all.data);

    expect(await list(page(1, 2), "accepted")).toMatchObject({ pagination: { count: 7, pages: 4 } });
    expect(await list(page(1, 100), "failed")).toMatchObject({
      data: bad.map(({ id }) => ({
        device_id: id,
        status: "failed",
        reason: "payload-too-large",
        provider_reason: "PayloadTooLarge",
      })),
      pagination: { count: 2 },
    });
    const pending = await list({ by: "key", after: "", perPage: 100 }, "pending");
    expect(pending.data.map(({ device_id }) => device_id).sort()).toEqual(slow.map(({ id }) => id).sort());
    for (const delivery of pending.data) expect(delivery).toMatchObject({ status: "pending", attempts: 1 });

    await expect(list({ by: "key", after: "nonsense", perPage: 5 })).rejects.toMatchObject({
      code: "validation-failed",
    });
  });

  test("of an unknown notification are not found", async () => {
    const projectId = await dispatch.project();
    const question = { projectId, notificationId: newNotificationId(new Date()), page: page(1, 5) };
    await expect(sendRequest(dispatch.bus, deliveryRequests.list, question)).rejects.toMatchObject({
      code: "notification-not-found",
    });
  });
});

describe("providers", () => {
  const records = () => openBucket(dispatch.bus, "push_providers", ProvidersRecord);

  test("settings are put, shown without a secret, known to the gateway, and deleted", async () => {
    const { bus, settings, database } = dispatch;
    const projectId = newProjectId(new Date());
    const one = { projectId, provider: "apns" } as const;
    await expect(sendRequest(bus, providerRequests.get, one)).rejects.toMatchObject({ code: "provider-not-found" });

    const put = await sendRequest(bus, providerRequests.put, { ...one, settings: settings() });
    expect(put).toMatchObject({
      provider: "apns",
      status: "active",
      settings: { key_id: "ABCDEFGHIJ", team_id: "KLMNOPQRST" },
    });
    expect(await sendRequest(bus, providerRequests.get, one)).toEqual(put);
    const fingerprintOf = async (sent: unknown) =>
      (await sendRequest(bus, providerRequests.put, { ...one, settings: sent })).fingerprint;
    const reversed = Object.fromEntries(Object.entries(settings()).toReversed());
    expect([put.fingerprint, await fingerprintOf(reversed)]).toEqual(Array(2).fill(settingsFingerprint(settings())));
    expect(await fingerprintOf(settings({ bundle_id: "com.example.other" }))).not.toBe(put.fingerprint);
    expect((await records().get(projectProvidersKey(projectId)))?.value).toEqual({ providers: ["apns"] });

    const stored = await database.client.db(database.name).collection("credentials").find({ projectId }).toArray();
    expect(JSON.stringify([put, stored])).not.toContain("PRIVATE KEY");

    await sendRequest(bus, providerRequests.delete, one);
    expect((await records().get(projectProvidersKey(projectId)))?.value).toEqual({ providers: [] });
    await expect(sendRequest(bus, providerRequests.delete, one)).rejects.toMatchObject({ code: "provider-not-found" });
  });

  test.each([
    ["a key that does not parse", { private_key: "-----BEGIN PRIVATE KEY-----\nnonsense" }, /private_key: /],
    ["a key id that is none", { key_id: "short" }, /key_id: /],
    ["a field that is not known", { colour: "blue" }, /colour/],
    ["an endpoint that is none", { endpoint: "https://example.com/path" }, /endpoint: /],
  ])("%s is refused in words, and changes nothing", async (_, change, message) => {
    const { bus, settings } = dispatch;
    const projectId = newProjectId(new Date());
    const put = sendRequest(bus, providerRequests.put, { projectId, provider: "apns", settings: settings(change) });
    await expect(put).rejects.toMatchObject({ code: "validation-failed", messages: [expect.stringMatching(message)] });
    await expect(sendRequest(bus, providerRequests.get, { projectId, provider: "apns" })).rejects.toMatchObject({
      code: "provider-not-found",
    });
  });

  test("new settings are used from the next batch on", async () => {
    const { putProvider, project, send, partition, final, simulators } = dispatch;
    const projectId = await project();
    const first = await send(projectId);
    await partition(projectId, first, [devices(1)]);
    await final(projectId, first);
    await putProvider(projectId, { bundle_id: "com.example.other" });
    const second = await send(projectId);
    await partition(projectId, second, [devices(1)]);
    await final(projectId, second);
    // Only this project's pushes: those of other tests may arrive during this one.
    const own = simulators
      .pushes()
      .filter(({ payload }) => (payload as { project_id?: string }).project_id === projectId);
    expect(own.map(({ headers }) => headers["apns-topic"])).toEqual(["com.example.app", "com.example.other"]);
  });
});
