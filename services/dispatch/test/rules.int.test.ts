import { openBucket, sendRequest } from "@herald/bus";
import {
  type ActivityEvent,
  type DeclaredKind,
  DeliveryDelayedV1,
  deliveryRequests,
  type ProjectId,
  projectRulesKey,
  type Recipient,
  RulesRecord,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

let dispatch: DispatchTest;
let registry: RegistryFixture;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  registry = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await registry.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  projectId = await dispatch.project();
});

const offers: DeclaredKind = { kind: "offers", title: "Offers", on_by_default: true, critical: false };

/** Waits until a send finds the rules. */
const setRules = async (rules: Partial<RulesRecord>): Promise<void> => {
  const record = { projectId, kinds: [offers], ...rules };
  await openBucket(dispatch.bus, "push_projects", RulesRecord).put(projectRulesKey(projectId), record);
  await eventually(async () => {
    const id = await dispatch.send(projectId, {}, { kind: record.kinds[0]?.kind });
    expect((await dispatch.expansion(projectId, id)).rules).toBeDefined();
  });
};

const send = async (batches: Parameters<DispatchTest["partition"]>[2], content = {}, change = {}) => {
  const id = await dispatch.send(projectId, change, { kind: "offers", ...content });
  await dispatch.partition(projectId, id, batches);
  return id;
};

describe("a kind", () => {
  test("that devices have switched off is not sent to them", async () => {
    await setRules({});
    const [one, other] = devices(2);
    if (!one || !other) throw new Error("no devices");
    const id = await send([[one, { ...other, off: true }]]);
    const final = await dispatch.final(projectId, id);
    expect(final).toMatchObject({ status: "completed", counts: { accepted: 1, skipped: 1 }, skips: { muted: 1 } });
    const rows = await dispatch.deliveries(projectId, id);
    expect(rows.find(({ device_id }) => device_id === other.id)).toMatchObject({
      status: "skipped",
      reason: "muted",
      attempts: 0,
      possible_repeat: false,
    });
    expect(dispatch.simulators.pushes().filter(({ token }) => token === other.token)).toEqual([]);
  });

  test("with a cap reaches a person no more often, on all devices; a crash changes nothing", async () => {
    await setRules({ kinds: [{ ...offers, frequency_cap: { count: 2, per: "week" } }] });
    const batch = [...devices(2).map((one) => ({ ...one, userId: "ann" })), device()].sort((one, other) =>
      one.id < other.id ? -1 : 1,
    );
    const skips = [];
    for (let n = 0; n < 4; n++) {
      dispatch.fate.crashes = n === 1 ? 1 : 0;
      const final = await dispatch.final(projectId, await send([batch]));
      skips.push(final.skips);
    }
    expect(skips).toEqual([{}, {}, { "frequency-cap": 3 }, { "frequency-cap": 3 }]);
    const other = await dispatch.final(projectId, await send([batch], { kind: "news" }));
    expect(other.counts.accepted).toBe(3);
  });

  test("rules are evaluated once: a redelivery reads the results, also when the rules have changed", async () => {
    await setRules({});
    const [one, other] = devices(2);
    if (!one || !other) throw new Error("no devices");
    dispatch.fate.crashes = 1;
    const id = await send([[one, { ...other, off: true }]]);
    await eventually(async () => expect((await dispatch.rows(id))[0]?.decided).toBeDefined());
    await openBucket(dispatch.bus, "push_projects", RulesRecord).delete(projectRulesKey(projectId));
    const final = await dispatch.final(projectId, id);
    expect(final).toMatchObject({ counts: { accepted: 1, skipped: 1 }, skips: { muted: 1 } });
  });
});

describe("a small send", () => {
  test("stores the results with it", async () => {
    await setRules({ kinds: [{ ...offers, frequency_cap: { count: 1, per: "week" } }] });
    const one = { ...device(), userId: "ann" };
    registry.registry.set(one.id, { devices: [one] });
    const ends = [];
    for (let n = 0; n < 2; n++) {
      const id = await dispatch.sendSmall(projectId, { kind: "offers", targets: [one.id] });
      ends.push((await dispatch.final(projectId, id)).skips);
    }
    expect(ends).toEqual([{}, { "frequency-cap": 1 }]);
  });
});

describe("quiet hours", () => {
  const fullMinute = (ms: number): string =>
    new Date(Math.floor((dispatch.now().getTime() + ms) / 60_000) * 60_000).toISOString();
  const clock = (ms: number): string => fullMinute(ms).slice(11, 16);

  test("delay a device until they end; then kind and cap are evaluated, and the hours are not", async () => {
    const until = fullMinute(7_200_000);
    await setRules({ quietHours: { from: clock(-3_600_000), to: until.slice(11, 16), mode: "delay" } });
    const [quiet, muted, awake] = devices(3);
    if (!quiet || !muted || !awake) throw new Error("no devices");
    const zone = "Pacific/Kiritimati";
    const id = await send([[quiet, muted, { ...awake, zone }]]);
    await eventually(async () => expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: 1 }));
    await eventually(async () => {
      const deliveries = await dispatch.deliveries(projectId, id);
      expect(deliveries.filter(({ status }) => status === "pending")).toHaveLength(2);
    });
    await eventually(async () =>
      expect(await dispatch.lastEvent(projectId, DeliveryDelayedV1)).toMatchObject({
        notification_id: id,
        devices: [quiet.id, muted.id],
        until,
        reason: "quiet-hours",
      }),
    );
    const trace = await sendRequest(dispatch.bus, deliveryRequests.trace, {
      projectId,
      notificationId: id,
      deviceId: quiet.id,
    });
    const delay = { at: expect.any(String), outcome: "delayed", reason: "quiet-hours", until, possible_repeat: false };
    expect(trace.attempts).toEqual([delay]);
    expect(trace.nextAttemptAt).toBe(until);
    dispatch.muted.add(muted.id);
    dispatch.pass(7_300_000);
    const final = await dispatch.final(projectId, id);
    expect(final).toMatchObject({ counts: { accepted: 2, skipped: 1 }, skips: { muted: 1 } });
    dispatch.pass(-7_300_000);
  });

  test("skip a device at once whose notification ends before", async () => {
    await setRules({ ownHours: true });
    const one = { ...device(), quiet: `${clock(-3_600_000)}-${clock(7_200_000)}` };
    const expiresAt = new Date(dispatch.now().getTime() + 3_600_000).toISOString();
    const final = await dispatch.final(projectId, await send([[one]], {}, { expiresAt }));
    expect(final.skips).toEqual({ "quiet-hours": 1 });
    const critical = { ...offers, critical: true, kind: "alert" };
    await setRules({ kinds: [offers, critical], ownHours: true });
    const accepted = await dispatch.final(projectId, await send([[one]], { kind: "alert" }, { expiresAt }));
    expect(accepted.counts.accepted).toBe(1);
  });
});

describe("of a Live Activity", () => {
  /** Of a kind that the device has switched off, also used up its cap, in quiet hours of the project. */
  const skipsOf = async (event: ActivityEvent, kind: string, device: Recipient) => {
    const activity = {
      id: "order-1",
      ...{ version: 1, event, content_state: { n: 1 }, timestamp: Math.floor(Date.now() / 1_000) },
      ...(event === "start" && { attributes_type: "Order", attributes: {} }),
    };
    const id = await send([[device]], { push_type: "liveactivity", kind, activity });
    const { counts, skips } = await dispatch.final(projectId, id);
    return { accepted: counts.accepted, skips };
  };
  const others: readonly ActivityEvent[] = ["update", "join", "end"];
  const pushed = { accepted: 1, skips: {} };

  test("rules apply to the start alone: what has started is shown to its end", async () => {
    const capped: DeclaredKind = {
      ...{ kind: "capped", title: "Capped", on_by_default: true, critical: false },
      frequency_cap: { count: 1, per: "week" },
    };
    await setRules({ kinds: [offers, capped] });
    const [muted, ordinary] = [device("00", { off: true }), device()];
    expect(await skipsOf("start", "offers", muted)).toEqual({ accepted: 0, skips: { muted: 1 } });
    for (const event of others) expect(await skipsOf(event, "offers", muted)).toEqual(pushed);
    // Only starts take slots.
    for (const event of others) expect(await skipsOf(event, "capped", ordinary)).toEqual(pushed);
    expect(await skipsOf("start", "capped", ordinary)).toEqual(pushed);
    expect(await skipsOf("start", "capped", ordinary)).toEqual({ accepted: 0, skips: { "frequency-cap": 1 } });
    for (const event of others) expect(await skipsOf(event, "capped", ordinary)).toEqual(pushed);

    const clock = (ms: number): string => new Date(dispatch.now().getTime() + ms).toISOString().slice(11, 16);
    await setRules({ quietHours: { from: clock(-3_600_000), to: clock(7_200_000), mode: "skip" } });
    const quiet = { accepted: 0, skips: { "quiet-hours": 1 } };
    await eventually(async () => expect(await skipsOf("start", "news", ordinary)).toEqual(quiet));
    for (const event of others) expect(await skipsOf(event, "news", ordinary)).toEqual(pushed);
  });
});

test("a send without rules carries and stores nothing for them", async () => {
  const id = await dispatch.send(projectId, {}, { kind: "offers" });
  expect(await dispatch.expansion(projectId, id)).not.toHaveProperty("rules");
  await dispatch.partition(projectId, id, [devices(2)]);
  await dispatch.final(projectId, id);
  for (const row of await dispatch.rows(id)) expect(row).not.toHaveProperty("decided");
  const db = dispatch.database.client.db(dispatch.database.name);
  expect(await db.collection("caps").countDocuments({ projectId })).toBe(0);
});
