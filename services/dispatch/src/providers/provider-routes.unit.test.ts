import { type DeviceId, newDeviceId } from "@herald/contracts";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { nextAttemptAt } from "../domain/retry.ts";
import { createProviderRoutes, type RoutePermit } from "./provider-routes.ts";
import { createRoutePause } from "./route-pause.ts";

const problem = { reason: "connection-refused", host: "push.example", detail: "cannot reach push.example" } as const;
const server = "https://push.example";

let time: number;
let changes: string[];
let routes: ReturnType<typeof createProviderRoutes>;
beforeEach(() => {
  time = 1_000_000;
  changes = [];
  routes = createProviderRoutes({
    now: () => time,
    unreached: () => {},
    reached: () => {},
    changed: (change) => void changes.push(change),
  });
});

const device = () => newDeviceId(new Date());
const devices = (count: number) => Array.from({ length: count }, device);
const permitFor = (id: DeviceId): RoutePermit => {
  const permit = routes.acquire(server, id);
  if (typeof permit === "number") throw new Error(`blocked for ${permit - time} ms`);
  return permit;
};
/** How long a device must wait, in milliseconds. */
const blockedFor = (id = device()) => (routes.blockedUntil(server, id) ?? time) - time;

describe("a server that fails", () => {
  const fail = (count: number) => {
    for (const permit of devices(count).map(permitFor)) routes.onFailure(permit, "HTTP 503");
  };

  test("pauses at the twentieth failure in a row, for a second", () => {
    fail(19);
    expect(blockedFor()).toBe(0);
    fail(1);
    expect(blockedFor()).toBe(1_000);
    expect(routes.acquire(server, device())).toBe(time + 1_000);
    expect(routes.failureOf(server)).toBe("HTTP 503");
    expect(changes).toEqual(["opened"]);
  });

  test("does not pause while some pushes succeed, nor for pushes that were not sent", () => {
    for (let round = 0; round < 10; round++) {
      fail(19);
      const id = device();
      routes.onSuccess(permitFor(id), id);
    }
    fail(19);
    for (const permit of devices(100).map(permitFor)) routes.release(permit);
    expect(changes).toEqual([]);
  });

  test("is probed by five pushes, and the others wait", () => {
    fail(20);
    time += 1_000;
    const probes = devices(5).map(permitFor);
    expect(blockedFor()).toBe(5_000);
    routes.release(probes[0] as RoutePermit);
    permitFor(device());
    expect(blockedFor()).toBe(5_000);
  });

  test("is open at the first success, also of a push that was sent before", () => {
    const [before] = devices(1).map(permitFor);
    fail(20);
    routes.onSuccess(before as RoutePermit, device());
    expect(blockedFor()).toBe(0);
    expect(changes).toEqual(["opened", "closed"]);
  });

  test("pauses for twice as long when a probe fails, up to a minute, and for a second again after a success", () => {
    fail(20);
    for (const ms of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      expect(blockedFor()).toBe(ms);
      time += ms;
      fail(1);
    }
    time += 60_000;
    const id = device();
    routes.onSuccess(permitFor(id), id);
    fail(20);
    expect(blockedFor()).toBe(1_000);
  });

  test("ignores failures of pushes from before the pause, and counts several failed probes once", () => {
    const before = devices(30).map(permitFor);
    for (const permit of before) routes.onFailure(permit, "no answer");
    expect(blockedFor()).toBe(1_000);
    time += 1_000;
    for (const permit of devices(5).map(permitFor)) routes.onFailure(permit, "no answer");
    expect(blockedFor()).toBe(2_000);
    expect(changes).toEqual(["opened", "reopened"]);
  });
});

test("a server that cannot be reached pauses at the first failure, and is open at the first success", () => {
  routes.onFailure(permitFor(device()), problem.detail, problem);
  expect(blockedFor()).toBe(1_000);
  expect(routes.failureOf(server)).toBe(problem.detail);
  expect(routes.blockedUntil("https://other.example", device())).toBeUndefined();
  time += 1_000;
  routes.onFailure(permitFor(device()), problem.detail, problem);
  expect(blockedFor()).toBe(2_000);
  time += 2_000;
  const id = device();
  routes.onSuccess(permitFor(id), id);
  expect(blockedFor()).toBe(0);
});

describe("answers about devices", () => {
  test.each(["HTTP 507", "HTTP 500", "HTTP 502", "HTTP 504"])(
    "%s for fifty devices of a stranger pauses them, and no other device",
    (reason) => {
      const strange = devices(50);
      for (const [id, permit] of strange.map((id) => [id, permitFor(id)] as const))
        routes.onRefusal(permit, id, reason, "device");
      expect(blockedFor()).toBe(0);
      expect(permitFor(device()).admittedAt).toBe(0);
      expect(strange.map(blockedFor)).toEqual(strange.map(() => 1_000));
      expect(changes).toEqual([]);
    },
  );

  test("a device that is accepted again is free, and ends the pause of those that were refused like it", () => {
    const strange = devices(20);
    for (const id of strange) routes.onRefusal(permitFor(id), id, "HTTP 502", "device");
    time += 1_000;
    const [first = device(), second] = strange;
    routes.onSuccess(permitFor(first), first);
    expect([blockedFor(first), blockedFor(second)]).toEqual([0, 0]);
  });

  test("refused ones wait with all others while their server cannot be reached", () => {
    const id = device();
    routes.onRefusal(permitFor(id), id, "HTTP 507", "device");
    routes.onFailure(permitFor(device()), problem.detail, problem);
    expect([blockedFor(id), blockedFor()]).toEqual([1_000, 1_000]);
  });

  test("a limit that only a stranger's devices reach delays others by a second at most", () => {
    const strange = devices(50);
    for (const [id, permit] of strange.map((id) => [id, permitFor(id)] as const))
      routes.onRefusal(permit, id, "HTTP 429", "sender");
    expect(blockedFor()).toBe(1_000);
    const good = device();
    for (let seconds = 0; seconds < 600; seconds++) {
      time += 1_000;
      // The stranger's devices are refused for ever, and the good one is always admitted.
      for (const id of strange) {
        const permit = routes.acquire(server, id);
        if (typeof permit !== "number") routes.onRefusal(permit, id, "HTTP 429", "sender");
      }
      routes.onSuccess(permitFor(good), good);
    }
    expect(blockedFor(good)).toBe(0);
    expect(Math.max(...strange.map(blockedFor))).toBeGreaterThan(1_000);
  });
});

/** A server that takes `burst` pushes at once and one more each `refillMs`, as ntfy does for each sender. */
const bucket = (burst: number, refillMs: number) => {
  let full = burst;
  let at = time;
  return () => {
    full = Math.min(burst, full + (time - at) / refillMs);
    at = time;
    if (full < 1) return false;
    full--;
    return true;
  };
};

/** Sends to phones on a server that limits, until all have it. The times of the refusals and the end, in seconds. */
const sendAll = (count: number, takes: () => boolean, { rttMs = 100, stepMs = 50, inFlight = 500 } = {}) => {
  const begun = time;
  const expiresAt = new Date(time + 86_400_000);
  let waiting = devices(count).map((id) => ({ id, unprocessed: 0, notBefore: 0 }));
  let flying: { phone: (typeof waiting)[number]; permit: RoutePermit; at: number }[] = [];
  const refusals: number[] = [];
  let random = 0;
  while (waiting.length + flying.length > 0 && time < expiresAt.getTime()) {
    time += stepMs;
    for (const { phone, permit } of flying.filter(({ at }) => at <= time)) {
      if (takes()) {
        routes.onSuccess(permit, phone.id);
        continue;
      }
      refusals.push(Math.round((time - begun) / 1_000));
      routes.onRefusal(permit, phone.id, "HTTP 429", "sender");
      random = (random + 0.37) % 1;
      const unprocessed = phone.unprocessed + 1;
      const next = nextAttemptAt({ attempts: 0, unprocessed, now: new Date(time), expiresAt, random });
      waiting.push({ ...phone, unprocessed, notBefore: next?.getTime() ?? Number.POSITIVE_INFINITY });
    }
    flying = flying.filter(({ at }) => at > time);
    const blocked: typeof waiting = [];
    for (const phone of waiting) {
      const permit = phone.notBefore > time || flying.length >= inFlight ? time : routes.acquire(server, phone.id);
      if (typeof permit === "number") blocked.push(phone);
      else flying.push({ phone, permit, at: time + rttMs });
    }
    waiting = blocked;
  }
  return { refusals, seconds: (time - begun) / 1_000, left: waiting.length };
};

/** The most refusals of a minute that begins after `from` seconds. */
const worstMinute = (refusals: readonly number[], from: number) =>
  Math.max(
    0,
    ...refusals
      .filter((at) => at >= from)
      .map((at) => refusals.filter((other) => other >= at && other < at + 60).length),
  );

describe("a server that limits its senders", () => {
  test("takes 400 pushes as fast as it allows, and refuses a handful a minute after the first burst", () => {
    const { refusals, seconds, left } = sendAll(400, bucket(60, 5_000));
    const allowed = (400 - 60) * 5;
    expect(left).toBe(0);
    expect(seconds).toBeLessThan(allowed * 1.3);
    expect(worstMinute(refusals, 2)).toBeLessThan(10);
  });

  test("refuses few pushes of later sends, too", () => {
    const takes = bucket(60, 5_000);
    sendAll(400, takes);
    for (const pause of [600_000, 3_600_000]) {
      time += pause;
      const { refusals, left } = sendAll(100, takes);
      expect(left).toBe(0);
      expect(worstMinute(refusals, 0)).toBeLessThan(15);
    }
  });

  test("is at full speed half a minute after a single refusal", () => {
    let answers = 0;
    const { seconds } = sendAll(2_000, () => ++answers > 1, { inFlight: 50 });
    expect(seconds).toBeLessThan(60);
  });
});

test("rows that wait for a server take turns, so that few look at it in vain", () => {
  routes.onRefusal(permitFor(device()), device(), "HTTP 429", "sender");
  const until = time + 1_000;
  const turns = Array.from({ length: 60 }, () => routes.turnFrom(server, device(), until) - until);
  expect(turns).toEqual(Array.from({ length: 60 }, (_, index) => index * 1_000));
  // No row waits for longer than a minute.
  expect([1, 2, 3].map(() => routes.turnFrom(server, device(), until) - until)).toEqual([60_000, 0, 1_000]);
  expect(routes.turnFrom(server, device(), time + 100)).toBe(time + 100);
});

test("of any steps, at most five pushes are admitted in a pause, and one success lets everything pass", () => {
  const step = fc.record({ what: fc.constantFrom("fail", "succeed", "release", "admit"), ms: fc.nat(30_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const pause = createRoutePause();
      const admitted: number[] = [];
      let at = 1;
      let probes = 0;
      for (const { what, ms } of steps) {
        at += ms;
        if (what === "admit") {
          const given = pause.admit(at);
          if (typeof given === "number") expect(given).toBeGreaterThan(at);
          else {
            admitted.push(given.admittedAt);
            if (given.admittedAt > 0) probes++;
          }
        } else {
          const given = admitted.shift();
          if (given === undefined) continue;
          if (what === "release") {
            pause.released(given);
            probes = 0;
          } else if (what === "fail") {
            if (pause.failed(given, at)) probes = 0;
          } else {
            pause.succeeded(given);
            probes = 0;
            expect(pause.blockedUntil(at)).toBeUndefined();
          }
        }
        expect(probes).toBeLessThanOrEqual(5);
      }
    }),
  );
});
