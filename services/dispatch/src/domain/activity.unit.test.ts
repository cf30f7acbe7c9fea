import {
  type ActivityPush,
  type ActivityRecord,
  type NewActivity,
  newDeviceId,
  newProjectId,
  type SendV1,
} from "@herald/contracts";
import {
  changeActivity,
  endActivity,
  firstSends,
  joinSend,
  laterJoin,
  newActivityRecord,
  newestSend,
} from "@herald/rules";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { activityActionOf, channelsDueAt, cleanAtOf, endAtItsTime, leftChannel, prefixesOf } from "./activity.ts";

const key = { projectId: newProjectId(new Date()), id: "order-4711" };
const deviceId = newDeviceId(new Date());
const startAt = Date.parse("2030-01-31T09:00:00Z");

const activity = (more: Partial<NewActivity> = {}): NewActivity => ({
  attributes_type: "Order",
  attributes: {},
  content_state: { n: 0 },
  targets: ["user:u1"],
  start: true,
  alert: { title: "Start", body: "It begins." },
  ...more,
});
const record = (more: Partial<ActivityRecord> = {}): ActivityRecord => ({
  ...newActivityRecord(activity(), "put", new Date(startAt)),
  ...more,
});
const sentAs = (event: ActivityPush["event"], version: number | undefined): ActivityPush => ({
  ...{ id: key.id, event, content_state: { n: -1 }, timestamp: 0 },
  ...(version !== undefined && { version }),
});
const at = (ms: number) => new Date(startAt + ms);
const actionOf = (one: ActivityRecord | undefined, sent: ActivityPush) => activityActionOf(key, one, sent);

describe("a row of an activity", () => {
  test("is replaced by a newer version, and sends its own otherwise", () => {
    expect(actionOf(record({ version: 3 }), sentAs("update", 2))).toEqual({ kind: "replaced" });
    expect(actionOf(record({ version: 3 }), sentAs("update", 3))).toMatchObject({ push: { content_state: { n: 0 } } });
    // From a backup of the broker, or gone: the timestamp decides on the phone.
    for (const old of [record(), undefined])
      expect(actionOf(old, sentAs("update", 2))).toMatchObject({ kind: "push", push: { content_state: { n: -1 } } });
  });

  test("of a start or a join takes the newest state; only the end stops a start", () => {
    const newest = record({ version: 7, contentState: { n: 7 } });
    expect(actionOf(newest, sentAs("start", 1))).toMatchObject({
      push: { event: "start", version: 7, content_state: { n: 7 }, alert: { title: "Start" } },
    });
    const pending = { ...newest, alert: { title: "Soon", body: "Now." } };
    expect(actionOf(pending, sentAs("join", 2))).toMatchObject({ kind: "push", push: { version: 7 } });
    expect(actionOf(pending, sentAs("join", 2))).not.toHaveProperty("push.alert");
    const ended = endActivity(key, newest, {}, at(0), "body");
    if (ended.kind !== "written") throw new Error("not ended");
    expect(actionOf(ended.record, sentAs("start", 1))).toEqual({ kind: "replaced" });
    expect(actionOf(ended.record, sentAs("join", 2))).toMatchObject({ push: { ended: true, version: 8 } });
  });

  test("of the end at `ends_at` sends it, unless a request has ended the activity", () => {
    const ended = endAtItsTime(key, record(), at(60_000));
    if (ended === undefined) throw new Error("not ended");
    expect(ended).toMatchObject({ version: 2, timestamp: startAt / 1000 + 60, end: { at: startAt + 60_000 } });
    expect(endAtItsTime(key, ended, at(70_000))).toBeUndefined();
    expect(actionOf(ended, sentAs("end", undefined))).toMatchObject({ kind: "push", push: { version: 2 } });
    const byRequest = endActivity(key, record(), {}, at(0), "body");
    expect(byRequest.kind === "written" && actionOf(byRequest.record, sentAs("end", undefined))).toEqual({
      kind: "replaced",
    });
    expect(actionOf(undefined, sentAs("end", undefined))).toEqual({ kind: "replaced" });
  });

  test("claims an alert before its push", () => {
    const waiting = record({ version: 2, alert: { title: "Soon", body: "Now." } });
    const claimed = actionOf(waiting, sentAs("update", 2));
    if (claimed.kind !== "write") throw new Error("nothing is written");
    expect(actionOf(claimed.record, sentAs("update", 2))).toMatchObject({ push: { alert: { title: "Soon" } } });
    const next = changeActivity(claimed.record, { content_state: {} }, at(5_000));
    expect(next).toMatchObject({ record: { version: 3 } });
    expect(next).not.toHaveProperty("record.alert");
    expect(changeActivity(waiting, { content_state: {} }, at(5_000))).toMatchObject({
      record: { version: 3, alert: { title: "Soon" } },
    });
  });
});

type Push = ActivityPush & { readonly token: string | undefined };
type Process = Generator<void, void, void>;

describe("a device that replaces its token", () => {
  const join = (tokenHash: string, atMs: number, sendAt?: string) =>
    joinSend(key, record(), { deviceId, tokenHash, at: at(atMs).toISOString(), sendAt });

  test("gets one send for all of its tokens of a minute, and one for each of those that are sent at once", () => {
    const first = laterJoin(deviceId, at(0)).getTime() - startAt;
    const times = [first - 5_001, first - 5_000, first + 54_999, first + 55_000].map(
      (ms) => laterJoin(deviceId, at(ms)).getTime() - startAt - first,
    );
    expect(times).toEqual([0, 60_000, 60_000, 120_000]);
    expect([first > 5_000, first <= 65_000]).toEqual([true, true]);
    const sendAt = laterJoin(deviceId, at(0)).toISOString();
    const [one, other] = [join("a", 1_000, sendAt), join("b", 20_000, sendAt)];
    expect(one).toEqual(other);
    expect(one).toMatchObject({ sendAt, content: { targets: [deviceId], activity: { event: "join" } } });
    expect(Date.parse(one.expiresAt)).toBeGreaterThan(Date.parse(sendAt));
    expect(join("a", 1_000).notificationId).not.toBe(join("b", 1_000).notificationId);
  });

  test("gets it at another moment of the minute than other devices", () => {
    const moments = Array.from({ length: 6_000 }, () => laterJoin(newDeviceId(at(0)), at(0)).getTime());
    const seconds = Map.groupBy(moments, (ms) => Math.floor(ms / 1_000) % 60);
    expect(seconds.size).toBe(60);
    expect(Math.max(...[...seconds.values()].map(({ length }) => length))).toBeLessThan(200);
  });
});

/**
 * Runs writers, rows, joins and the end in an order that `seed` decides, one read or write after another. Some die on the way: a writer
 * between the record and its send, a row before or after its push. A push may arrive late, after later ones.
 */
const simulate = (seed: number, { start, ends, rotates }: { start: boolean; ends: boolean; rotates: boolean }) => {
  let state = seed;
  /** A number below `options`, from the seed (mulberry32). */
  const choose = (options: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % options;
  };
  let clock = startAt;
  // Clocks of processes differ by up to three seconds.
  const now = (): Date => new Date(clock + choose(4) * 1_000);
  let crashes = 4;
  const crash = (): boolean => crashes > 0 && choose(4) === 3 && crashes-- > 0;

  let entry = { record: newActivityRecord(activity({ start }), "put", new Date(startAt)), revision: 1 };
  const store = (one: ActivityRecord, revision: number): boolean => {
    if (entry.revision !== revision) return false;
    entry = { record: one, revision: revision + 1 };
    return true;
  };

  const phone = {
    token: start ? undefined : ("t0" as string | undefined),
    registered: undefined as string | undefined,
    timestamp: -1,
    versions: [] as number[],
    alerts: new Map<string, Set<number>>(),
    ended: false,
  };
  let acknowledged = 1;
  let gaveUp = false;
  const processes: Process[] = [];
  const run = (process: Process) => void processes.push(process);

  function* pause(most: number): Process {
    for (let steps = choose(most); steps > 0; steps--) yield;
  }

  function* arrive({ token, event, version = 0, timestamp, alert, ended }: Push): Process {
    yield* pause(10);
    if (event === "start") {
      if (phone.token !== undefined) return; // a second card, which the kit ends
      phone.token = "t0";
      run(register("t0"));
    } else if (token !== phone.token) return;
    if (alert) phone.alerts.set(alert.title, (phone.alerts.get(alert.title) ?? new Set()).add(version));
    if (phone.ended || timestamp < phone.timestamp) return;
    phone.timestamp = timestamp;
    phone.versions.push(version);
    phone.ended = event === "end" || ended === true;
  }

  /** One row of a send, delivered until it has its outcome. */
  function* row(send: SendV1): Process {
    const { activity: sent } = send.content;
    if (!sent) throw new Error("no activity");
    yield* pause(15);
    const token = sent.event === "start" ? undefined : phone.registered;
    if (sent.event === "start" ? phone.registered !== undefined : token === undefined) return;
    for (;;) {
      yield;
      const { record: one, revision } = entry;
      yield;
      const action = activityActionOf(key, one, sent);
      if (crash()) continue;
      if (action.kind === "write") {
        store(action.record, revision);
        continue;
      }
      const newest = action.kind === "replaced" && sent.version !== undefined ? newestSend(key, one) : undefined;
      if (newest) run(row(newest));
      if (action.kind === "push") run(arrive({ ...action.push, token }));
      if (!crash()) return; // otherwise it is pushed again
    }
  }

  /** At `ends_at`: the record ends before the audience is read. */
  function* endAtTime(send: SendV1): Process {
    yield* pause(80);
    for (;;) {
      const { record: one, revision } = entry;
      yield;
      const ended = endAtItsTime(key, one, now());
      if (ended === undefined || store(ended, revision)) break;
    }
    if (crash()) run(endAtTime(send));
    else run(row(send));
  }

  function* register(token: string): Process {
    yield* pause(40);
    phone.registered = token;
    yield;
    const { record: one } = entry;
    yield;
    run(row(joinSend(key, one, { deviceId, tokenHash: token, at: now().toISOString() })));
  }

  function* rotate(token: string): Process {
    yield* pause(60);
    if (phone.token === undefined) return;
    phone.token = token;
    run(register(token));
  }

  /** A client that repeats its request until it is answered, or gives up when its gateway died. */
  function* writer(sequence: number, alert: boolean): Process {
    yield* pause(60);
    for (let tries = 0; tries < 20; tries++) {
      yield;
      const { record: one, revision } = entry;
      yield;
      const alerts = alert ? { alert: { title: `alert-${sequence}`, body: "!" } } : {};
      const written = changeActivity(one, { content_state: { n: sequence }, sequence, ...alerts }, now());
      if (written.kind === "ended" || written.kind === "too-fast") return;
      if (written.kind === "written" && !store(written.record, revision)) continue;
      const newest = written.kind === "written" ? written.record : one;
      yield;
      if (crash()) {
        gaveUp ||= choose(2) === 0;
        if (gaveUp) return;
        continue;
      }
      const send = newestSend(key, newest);
      if (send && newest.version > 1) run(row(send));
      acknowledged = Math.max(acknowledged, newest.version);
      return;
    }
  }

  const [first, ...others] = firstSends(key, entry.record);
  const scheduled = others.pop();
  for (const send of [first, ...others]) if (send) run(row(send));
  if (!start) run(register("t0"));
  for (const sequence of [1, 2, 3]) run(writer(sequence, sequence !== 2));
  if (rotates) run(rotate("t1"));
  if (ends && scheduled) run(endAtTime(scheduled));
  while (processes.length > 0) {
    const at = choose(processes.length);
    clock += choose(3) * 100;
    if (processes[at]?.next().done) processes.splice(at, 1);
  }
  return { phone, newest: entry.record, acknowledged, gaveUp };
};

test("in every order, a phone that keeps the highest timestamp ends at the newest version", () => {
  fc.assert(
    fc.property(
      fc.noShrink(fc.integer()),
      fc.record({ start: fc.boolean(), ends: fc.boolean(), rotates: fc.boolean() }),
      (seed, options) => {
        const { phone, newest, acknowledged, gaveUp } = simulate(seed, options);
        // What it shows never goes back.
        expect(phone.versions).toEqual(phone.versions.toSorted((one, other) => one - other));
        expect(acknowledged).toBeLessThanOrEqual(newest.version);
        // A start that waits is stopped by the end alone.
        if (phone.token === undefined) expect(newest.end).toBeDefined();
        // A version without a 202 may stay unsent, but it must not stop one that has it.
        else if (phone.registered === phone.token)
          expect(phone.versions.at(-1)).toBeGreaterThanOrEqual(gaveUp ? acknowledged : newest.version);
        for (const [title, versions] of phone.alerts)
          if (title !== "Start") expect([...versions], title).toHaveLength(1);
      },
    ),
    { numRuns: process.env.HERALD_TEST_LONG ? 3_000 : 300 },
  );
});

describe("a channel", () => {
  const hour = 3_600_000;
  const minute = 60_000;
  const ids = (count: number) => Array.from({ length: count }, (_, n) => `${n}`.padStart(8, "0").padEnd(24, "="));
  const [left = "", foreign = "", ...others] = ids(102);
  const asked = { askedAt: startAt, before: prefixesOf(others.slice(0, 3)) };
  const found = (listed: readonly string[], more: object = {}, at = startAt + minute) =>
    leftChannel(record(), { ...asked, ...more }, listed, at);

  test("is needed for four hours after the end, by a request or at its time", () => {
    expect(channelsDueAt(record())).toBe(record().endsAt + 4 * hour);
    const ended = endActivity(key, record(), {}, at(hour), "body");
    if (ended.kind !== "written") throw new Error("not ended");
    expect(channelsDueAt(ended.record)).toBe(startAt + 5 * hour);
  });

  test("is cleaned up when its answer is late, when it is not needed any more, or never", () => {
    expect(cleanAtOf(record(), { askedAt: startAt, before: null })).toBe(startAt + minute);
    expect(cleanAtOf(record(), { askedAt: startAt, id: left })).toBe(channelsDueAt(record()));
    expect(cleanAtOf(record(), { askedAt: startAt, left: { id: left, at: 7 } })).toBe(7);
    expect(cleanAtOf(record(), { askedAt: startAt, problem: "TooManyRequests" })).toBe(Number.POSITIVE_INFINITY);
  });

  test("that a lost answer left is deleted when no activity can need it", () => {
    const known = others.slice(0, 3);
    expect(found([...known, left])).toEqual({ id: left, at: startAt + minute + 13 * hour });
    // Those that were deleted meanwhile do not matter.
    expect(found([left])).toMatchObject({ id: left });
  });

  test("is never deleted where it may be another sender's", () => {
    const known = others.slice(0, 3);
    expect(found([...known, left, foreign])).toBeUndefined();
    expect(found(known)).toBeUndefined();
    expect(found([...known, left], { before: null })).toBeUndefined();
    expect(found([...known, left], {}, startAt + 10 * minute + 1)).toBeUndefined();
    // The record is gone by the time at which it could be deleted.
    const late = { ...asked, askedAt: startAt + hour };
    expect(leftChannel(record(), late, [left], startAt + hour)).toBeUndefined();
    expect(prefixesOf(others.slice(0, 100))).toEqual(expect.any(String));
    expect(prefixesOf(ids(101))).toBeNull();
    expect(prefixesOf(undefined)).toBeNull();
  });
});
