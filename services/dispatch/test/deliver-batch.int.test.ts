import { publish } from "@herald/bus";
import {
  DeliverBatchV1,
  DeliveryFailedV1,
  type NotificationId,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

let projectId: ProjectId;
let id: NotificationId;
beforeEach(async () => {
  dispatch.simulators.clear();
  projectId = await dispatch.project();
  id = await dispatch.send(projectId);
  await dispatch.expansion(projectId, id);
});

/** The pushes to a device, accepted or not. */
const pushesTo = (token: string) => dispatch.simulators.pushes({ token });

describe("a batch that comes again", () => {
  test("in another message is sent once", async () => {
    const [one] = devices(1);
    const batch = {
      batchId: `${id}/0/0`,
      projectId,
      notificationId: id,
      lane: "direct",
      platform: "ios",
      devices: one ? [one] : [],
    } as const;
    for (const copy of ["a", "b", "c"])
      await publish(dispatch.bus, DeliverBatchV1, { ...batch, devices: [...batch.devices] }, { id: copy });
    await dispatch.partition(projectId, id, [batch.devices]);
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
    // A later notification on the same subject is final, so the messages before it were handled, too.
    const later = await dispatch.send(projectId);
    await dispatch.partition(projectId, later, [devices(1), devices(1), devices(1)], { lane: "direct" });
    await dispatch.final(projectId, later);
    expect(pushesTo(one?.token ?? "")).toHaveLength(1);
    expect(await dispatch.rows(id)).toMatchObject([{ state: "final", starts: 1 }]);
  });

  test("after a crash between push and outcome is sent again, marked as a possible repeat", async () => {
    dispatch.fate.crashes = 1;
    const all = devices(3);
    await dispatch.partition(projectId, id, [all]);
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 3, accepted: 3 } });
    for (const delivery of await dispatch.deliveries(projectId, id))
      expect(delivery).toMatchObject({ status: "accepted", possible_repeat: true });
    for (const { token } of all) {
      const [first, second] = pushesTo(token);
      expect(second?.headers["apns-id"]).toBe(first?.headers["apns-id"]);
      expect(second?.headers["apns-collapse-id"]).toBe(id);
    }
  });
});

describe("an answer that settles a device", () => {
  test("410 retires the registration that is older, and keeps the one that is newer", async () => {
    const refusedAt = Date.parse("2026-06-01");
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "dead", status: 410, timestamp: refusedAt }]);
    const old = device("dead01", { tokenAt: refusedAt - 1 });
    const fresh = device("dead02", { tokenAt: refusedAt + 1 });
    await dispatch.partition(projectId, id, [[old, fresh]]);
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 2, failed: 2 },
      failures: { unregistered: 1, "unregistered-kept": 1 },
    });
    const event = await eventually(async () => {
      const found = await dispatch.lastEvent(projectId, DeliveryFailedV1);
      if (!found) throw new Error("no event");
      return found;
    });
    expect(event.unregistered).toEqual([
      { device_id: old.id, token_hash: pushTokenHash(old.token), at: new Date(refusedAt).toISOString() },
    ]);
    expect(event.failures.map(({ reason }) => reason).sort()).toEqual(["unregistered", "unregistered-kept"]);
    expect(JSON.stringify(event)).not.toContain(old.token);
  });

  test("a token that is none retires its device, with the reason", async () => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad", status: 400, reason: "BadDeviceToken" }]);
    const [bad, odd] = [device("bad"), device("", { token: "not hexadecimal" })];
    await dispatch.partition(projectId, id, [[bad, odd, device()]]);
    expect(await dispatch.final(projectId, id)).toMatchObject({ failures: { "token-invalid": 2 } });
    await eventually(async () => {
      const event = await dispatch.lastEvent(projectId, DeliveryFailedV1);
      const reason = "token-invalid";
      expect(event?.unregistered).toMatchObject([
        { device_id: bad.id, reason },
        { device_id: odd.id, reason },
      ]);
    });
  });

  test.each([
    { status: 410, counted: "unregistered-kept" },
    { status: 400, reason: "BadDeviceToken", counted: "token-invalid" },
  ])("a spike of $status retires no device", async ({ counted, ...answer }) => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "dead", ...answer }]);
    await dispatch.partition(projectId, id, [[...devices(11, "dead"), ...devices(40)]]);
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 51, accepted: 40, failed: 11 },
      failures: { [counted]: 11 },
    });
    await eventually(async () => {
      expect(await dispatch.lastEvent(projectId, DeliveryFailedV1)).toMatchObject({ unregistered: [] });
    });
  });

  test("one device's bad token or payload affects no other", async () => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad0", status: 413 }]);
    await dispatch.partition(projectId, id, [[device("bad0"), device("", { token: "not hexadecimal\n" }), device()]]);
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 3, accepted: 1, failed: 2 },
      failures: { "payload-too-large": 1, "token-invalid": 1 },
    });
  });

  test("a platform without settings fails, with its reason", async () => {
    await dispatch.partition(projectId, id, [devices(2)], { platform: "android" });
    expect(await dispatch.final(projectId, id)).toMatchObject({ failures: { "provider-not-configured": 2 } });
    expect(await dispatch.deliveries(projectId, id)).toMatchObject([{ attempts: 0 }, { attempts: 0 }]);
  });
});

describe("what cannot be sent now", () => {
  test("429 is waited out: not one request to that provider before Retry-After", async () => {
    dispatch.simulators.script([
      { provider: "apns", tokenPrefix: "429", times: 1, status: 429, headers: { "retry-after": "60" } },
      { provider: "apns", tokenPrefix: "503", times: 1, status: 503 },
    ]);
    const slow = device("429");
    await dispatch.partition(projectId, id, [[slow]], { of: 2 });
    await eventually(async () => {
      expect(await dispatch.rows(id)).toMatchObject([{ state: "final", tally: { devices: 0 } }, { state: "waiting" }]);
    });
    const other = device();
    await dispatch.partition(projectId, id, [[other]], { from: 1, of: 2 });
    await eventually(async () => expect(await dispatch.rows(id)).toHaveLength(4));
    // Another project's device waits for a shorter time, so it shows when the sweep has run.
    const elsewhere = await dispatch.project();
    const canary = await dispatch.send(elsewhere);
    await dispatch.partition(elsewhere, canary, [[device("503")]]);
    await eventually(async () => expect(await dispatch.rows(canary)).toHaveLength(2));
    dispatch.pass(25_000);
    await dispatch.final(elsewhere, canary);
    expect(pushesTo(slow.token)).toHaveLength(1);
    expect(pushesTo(other.token)).toHaveLength(0);
    expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { devices: 2, pending: 2 } });
    dispatch.pass(60_000);
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
    expect(await dispatch.deliveries(projectId, id)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ device_id: slow.id, attempts: 1 }),
        expect.objectContaining({ device_id: other.id, attempts: 1 }),
      ]),
    );
  });

  test("no answer is tried again and marked as a possible repeat", async () => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "c105e", times: 1, status: 200, closeSocket: true }]);
    const one = device("c105e");
    await dispatch.partition(projectId, id, [[one]]);
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{}, { state: "waiting" }]));
    dispatch.pass(60_000);
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(await dispatch.deliveries(projectId, id)).toMatchObject([{ possible_repeat: true, attempts: 2 }]);
  });

  test("after eight attempts it has failed", async () => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "500", status: 500 }]);
    const one = device("500");
    await dispatch.partition(projectId, id, [[one]]);
    for (let attempt = 1; attempt < 8; attempt++) {
      await eventually(async () => {
        const rows = await dispatch.rows(id);
        expect(rows).toHaveLength(attempt + 1);
        expect(rows.at(-1)).toMatchObject({ state: "waiting", tally: { devices: 1 } });
      });
      expect(pushesTo(one.token)).toHaveLength(attempt);
      expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { devices: 1, pending: 1 } });
      dispatch.pass(700_000);
    }
    expect(await dispatch.final(projectId, id)).toMatchObject({ failures: { "attempts-exhausted": 1 } });
    expect(pushesTo(one.token)).toHaveLength(8);
    expect(await dispatch.deliveries(projectId, id)).toMatchObject([
      { attempts: 8, provider_reason: "InternalServerError" },
    ]);
  });

  test.each([429, 503])(
    "what %i refuses was not processed: it uses no attempt, however often it is tried",
    async (status) => {
      dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad", status, times: 12 }]);
      const one = device("bad");
      await dispatch.partition(projectId, id, [[one]]);
      for (let tries = 1; tries <= 12; tries++) {
        await eventually(() => expect(pushesTo(one.token)).toHaveLength(tries));
        await eventually(async () => expect((await dispatch.rows(id)).map(({ state }) => state)).toContain("waiting"));
        dispatch.pass(1_500_000);
      }
      expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
      expect(await dispatch.deliveries(projectId, id)).toMatchObject([{ attempts: 1, possible_repeat: false }]);
    },
  );

  test("it expires while it waits, and tokens are gone from the ledger when nothing waits", async () => {
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);
    const one = device("503");
    await dispatch.partition(projectId, id, [[one]]);
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{}, { state: "waiting" }]));
    expect(JSON.stringify(await dispatch.rows(id))).toContain(one.token);
    dispatch.pass(86_500_000);
    expect(await dispatch.final(projectId, id)).toMatchObject({
      status: "expired",
      counts: { devices: 1, expired: 1 },
    });
    expect(pushesTo(one.token)).toHaveLength(1);
    expect(JSON.stringify(await dispatch.rows(id))).not.toContain(one.token);
  });
});
