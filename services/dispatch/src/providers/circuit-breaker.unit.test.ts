import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type Admission, createCircuitBreaker } from "./provider-routes.ts";

let breaker: ReturnType<typeof createCircuitBreaker>;
beforeEach(() => {
  breaker = createCircuitBreaker();
});

const fail = (count: number, at: number) => {
  for (let index = 0; index < count; index++) {
    const way = breaker.admit(at);
    if (typeof way !== "number") breaker.failed(way, at);
  }
};
/** Opens the breaker at 0, for 5 s. */
const opened = () => fail(20, 0);

describe("a closed breaker", () => {
  test("opens at the twentieth failure in a row", () => {
    fail(19, 0);
    expect(breaker.closed()).toBe(true);
    expect(breaker.failed("free", 0)).toBe(true);
    expect(breaker.blockedUntil(0)).toBe(5_000);
    expect(breaker.admit(4_999)).toBe(5_000);
  });

  test("does not open while some pushes succeed, nor for pushes that were not sent", () => {
    for (let round = 0; round < 10; round++) {
      fail(19, round);
      expect(breaker.succeeded("free")).toBe(false);
    }
    fail(19, 0);
    for (let count = 0; count < 100; count++) breaker.released("free");
    expect(breaker.closed()).toBe(true);
  });
});

describe("an open breaker", () => {
  beforeEach(opened);

  test("admits five probes when its time is over, and tells the others when to retry", () => {
    expect(Array.from({ length: 6 }, () => breaker.admit(5_000))).toEqual([
      "probe",
      "probe",
      "probe",
      "probe",
      "probe",
      10_000,
    ]);
    breaker.released("probe");
    expect(breaker.admit(6_000)).toBe("probe");
  });

  test("closes at the first success, also of what was sent before", () => {
    breaker.admit(5_000);
    expect(breaker.succeeded("free")).toBe(true);
    expect(breaker.admit(5_000)).toBe("free");
    expect(breaker.succeeded("probe")).toBe(false);
  });

  test("opens again for twice as long when a probe fails, up to a minute", () => {
    let at = 0;
    const times = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000];
    for (const [index, ms] of times.entries()) {
      expect(breaker.blockedUntil(at)).toBe(at + ms);
      at += ms;
      expect(breaker.admit(at)).toBe("probe");
      expect(breaker.failed("probe", at), String(index)).toBe(true);
    }
  });

  test("starts over with five seconds once it was closed", () => {
    breaker.admit(5_000);
    breaker.failed("probe", 5_000);
    breaker.admit(15_000);
    breaker.succeeded("probe");
    fail(20, 20_000);
    expect(breaker.blockedUntil(20_000)).toBe(25_000);
  });

  test("ignores pushes from before it opened, and counts several failed probes once", () => {
    expect(breaker.failed("free", 4_000)).toBe(false);
    for (let count = 0; count < 5; count++) breaker.admit(5_000);
    expect(breaker.failed("free", 5_500)).toBe(false);
    expect(breaker.failed("probe", 6_000)).toBe(true);
    for (let count = 0; count < 4; count++) expect(breaker.failed("probe", 6_000)).toBe(false);
    expect(breaker.blockedUntil(6_000)).toBe(16_000);
    expect(breaker.admit(16_000)).toBe("probe");
  });
});

test("whatever happens, at most five are probes at a time, and one success lets everything pass", () => {
  const step = fc.record({ what: fc.constantFrom("fail", "succeed", "release", "admit"), ms: fc.nat(30_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const one = createCircuitBreaker();
      const ways: Admission[] = [];
      let at = 0;
      for (const { what, ms } of steps) {
        at += ms;
        const way = what === "admit" ? one.admit(at) : ways.shift();
        if (typeof way === "number") expect(way).toBeGreaterThan(at);
        else if (what === "admit" && way) ways.push(way);
        else if (what === "fail" && way) one.failed(way, at);
        else if (what === "release" && way) one.released(way);
        else if (way) {
          one.succeeded(way);
          expect(one.blockedUntil(at)).toBeUndefined();
        }
        expect(ways.filter((each) => each === "probe").length).toBeLessThanOrEqual(5);
      }
    }),
  );
});
