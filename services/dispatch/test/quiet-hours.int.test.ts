import { openBucket } from "@herald/bus";
import {
  type DeclaredKind,
  DeliveryDelayedV1,
  type NotificationId,
  type ProjectId,
  projectRulesKey,
  type QuietHours,
  RulesRecord,
} from "@herald/contracts";
import { quietUntil } from "@herald/rules";
import { eventually, readPublished } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(async () => {
  projectId = await dispatch.project();
});

const hour = 3_600_000;
let passed = 0;
const pass = (ms: number): void => {
  passed += ms;
  dispatch.pass(ms);
};
afterEach(() => {
  pass(-passed);
  dispatch.startClock();
});

const offers: DeclaredKind = { kind: "offers", title: "Offers", on_by_default: true, critical: false };

const putRules = (rules: Partial<RulesRecord>) =>
  openBucket(dispatch.bus, "push_projects", RulesRecord).put(projectRulesKey(projectId), {
    ...{ projectId, kinds: [offers], ...rules },
  });

const send = async (batch: Parameters<DispatchTest["partition"]>[2][number]) => {
  const id = await dispatch.send(projectId, {}, { kind: "offers" });
  await dispatch.partition(projectId, id, [batch]);
  return id;
};

const clock = (ms: number) => new Date(dispatch.now().getTime() + ms).toISOString().slice(11, 16);
/** Hours of UTC that began an hour ago. */
const hoursUntil = (ms: number, mode: QuietHours["mode"]): QuietHours => ({ from: clock(-hour), to: clock(ms), mode });

/** Waits until quiet hours of two more hours delay a device. */
const delayNow = async () => {
  await putRules({ quietHours: hoursUntil(2 * hour, "delay") });
  const one = device();
  await knownTo(
    async () => (await dispatch.expansion(projectId, await dispatch.send(projectId))).rules?.hours === true,
  );
  const id = await send([one]);
  await eventually(async () => expect(await generations(id)).toEqual(["final", "waiting"]));
  return { one, id };
};

const knownTo = (isKnown: () => Promise<boolean>) => eventually(async () => expect(await isKnown()).toBe(true));

/** The states of the rows of a batch, first row first. */
const generations = async (id: NotificationId) =>
  (await dispatch.rows(id)).sort((one, other) => one.generation - other.generation).map(({ state }) => state);

const pushedOf = (tokens: ReadonlySet<string>) =>
  dispatch.simulators
    .pushes()
    .flatMap(({ token }) => (tokens.has(token) ? [token] : []))
    .sort();

const zones = Intl.supportedValuesOf("timeZone");
const everyTenth = Array.from({ length: 40 }, (_, at) => zones[(at * 10) % zones.length] ?? "UTC");
const night = { from: "22:00", to: "07:00", mode: "delay" } as const;

test("of a batch over 40 zones each device is pushed once its own hours have ended, with a row for each full hour", async () => {
  // Behind a full hour by more than the sweep leaves to the message of a row.
  const start = Math.ceil(dispatch.now().getTime() / hour) * hour + 120_000;
  dispatch.stopClock();
  pass(start - dispatch.now().getTime());
  await putRules({ quietHours: night });
  await knownTo(
    async () => (await dispatch.expansion(projectId, await dispatch.send(projectId))).rules?.hours === true,
  );
  const batch = devices(200).map((one, at) => ({ ...one, zone: everyTenth[at % everyTenth.length] }));
  const dueAt = (zone = "UTC") => {
    const end = quietUntil(night, zone, new Date(start));
    return end ? Math.ceil(end.getTime() / hour) * hour : start;
  };
  const tokensUntil = (at: number) => batch.flatMap(({ token, zone }) => (dueAt(zone) <= at ? [token] : [])).sort();
  const all = new Set(batch.map(({ token }) => token));
  const ends = new Set(batch.map(({ zone }) => dueAt(zone)).filter((end) => end > start));
  expect(ends.size).toBeGreaterThan(3); // five to nine, by the time of the day

  const id = await send(batch);
  for (let at = start; ; at += hour) {
    await eventually(() => expect(pushedOf(all)).toEqual(tokensUntil(at)));
    if (pushedOf(all).length === batch.length) break;
    await eventually(async () => expect((await generations(id)).at(-1)).toBe("waiting"));
    pass(hour);
  }
  const { counts } = await dispatch.final(projectId, id);
  expect(counts).toMatchObject({ devices: 200, accepted: 200 });
  expect(await dispatch.rows(id)).toHaveLength(1 + ends.size);

  const events = await readPublished(dispatch.broker, DeliveryDelayedV1.filter.replace("*", projectId));
  const delayed = events.map(({ body }) => DeliveryDelayedV1.schema.parse(JSON.parse(body)));
  const named = delayed.flatMap(({ devices: some, until }) => some.map((one) => `${one} ${until}`));
  const expected = batch.flatMap(({ id: one, zone }) =>
    dueAt(zone) > start ? [`${one} ${new Date(dueAt(zone)).toISOString()}`] : [],
  );
  expect(named.sort()).toEqual(expected.sort());
});

test("after a delay the hours are not evaluated again, nor after a crash", async () => {
  const { one, id } = await delayNow();
  await putRules({ quietHours: hoursUntil(4 * hour, "skip") });
  const skipped = async () => (await dispatch.final(projectId, await send([device()]))).skips["quiet-hours"] === 1;
  await knownTo(skipped);
  dispatch.fate.crashes = 1;
  pass(2 * hour);
  expect((await dispatch.final(projectId, id)).counts).toMatchObject({ accepted: 1, skipped: 0 });
  expect(await dispatch.deliveries(projectId, id)).toMatchObject([{ device_id: one.id, possible_repeat: true }]);
});

test("a cancel ends a delay at once", async () => {
  const { one, id } = await delayNow();
  await dispatch.cancel(projectId, id);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "cancelled", counts: { cancelled: 1 } });
  expect(pushedOf(new Set([one.token]))).toEqual([]);
});

test("a retry evaluates no rule: neither the kind nor quiet hours that have begun", async () => {
  await putRules({});
  await knownTo(async () => {
    const id = await dispatch.send(projectId, {}, { kind: "offers" });
    return (await dispatch.expansion(projectId, id)).rules !== undefined;
  });
  dispatch.simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);
  const one = device("503");
  const id = await send([one]);
  await eventually(async () => expect(await generations(id)).toEqual(["final", "waiting"]));
  await putRules({ quietHours: hoursUntil(4 * hour, "skip") });
  await knownTo(async () => (await dispatch.final(projectId, await send([device()]))).skips["quiet-hours"] === 1);
  dispatch.muted.add(one.id);
  pass(hour);
  expect((await dispatch.final(projectId, id)).counts).toMatchObject({ accepted: 1, skipped: 0 });
});
