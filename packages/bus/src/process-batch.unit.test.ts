import { deliveryGuard, type ErrorCode, errors, newProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { holdDelayMs } from "./permit.ts";
import { projectOf, retryDelayMs, settlementOf } from "./process-batch.ts";

const codes = Object.keys(errors) as ErrorCode[];

describe("settlementOf", () => {
  test.each(codes)("%s follows its table entry", (code) => {
    const settlement = settlementOf(new HeraldError(code, "words"), 1);
    const kinds = { never: "dead_lettered", unavailable: "retried", later: "retried" } as const;
    expect(settlement.kind).toBe(kinds[errors[code].retry]);
    if (settlement.kind === "dead_lettered") expect(settlement).toMatchObject({ reason: code, detail: "words" });
  });

  test.each([new Error("secret"), "secret", undefined, null, { code: "bus-unavailable" }])(
    "any other error is retried: %s",
    (thrown) => {
      expect(settlementOf(thrown, 1)).toMatchObject({ kind: "retried" });
    },
  );

  test.each([
    [deliveryGuard - 1, "retried"],
    [deliveryGuard, "dead_lettered"],
    [deliveryGuard + 5, "dead_lettered"],
  ])("any other error at delivery %i: %s", (deliveryCount, kind) => {
    expect(settlementOf(new Error("secret"), deliveryCount).kind).toBe(kind);
  });

  test("at the guard the message is exhausted, and the text of a foreign error is not kept", () => {
    expect(settlementOf(new TypeError("secret"), deliveryGuard)).toMatchObject({
      reason: "exhausted",
      detail: "TypeError",
    });
  });

  test("an unavailable dependency counts no delivery: the message is retried soon, even at the guard", () => {
    const { kind, delayMs } = settlementOf(new HeraldError("database-unavailable", "unavailable"), deliveryGuard) as {
      kind: string;
      delayMs: number;
    };
    expect(kind).toBe("retried");
    expect(delayMs).toBeLessThanOrEqual(retryDelayMs(1, () => 1));
  });
});

describe("delays", () => {
  const min = () => 0;
  const max = () => 1;

  test("the delay of a nak doubles up to 30 s, plus as much jitter", () => {
    expect([1, 2, 3, 8, 100].map((count) => retryDelayMs(count, min))).toEqual([250, 500, 1_000, 30_000, 30_000]);
    expect([1, 100].map((count) => retryDelayMs(count, max))).toEqual([500, 60_000]);
  });

  test("a full queue is retried within a second, an unavailable dependency within five, give or take a quarter", () => {
    const even = () => 0.5;
    expect([0, 1, 2, 20].map((tries) => holdDelayMs("queue-full", tries, even))).toEqual([25, 50, 100, 1_000]);
    expect([0, 20].map((tries) => holdDelayMs("database-unavailable", tries, even))).toEqual([25, 5_000]);
    expect([min, max].map((random) => holdDelayMs("database-unavailable", 20, random))).toEqual([3_750, 6_250]);
  });
});

const id = newProjectId(new Date());

test.each([
  ["an id", { projectId: id }, id],
  ["a text instead", { projectId: "hpt_a-secret-in-the-wrong-field" }, undefined],
  ["an object instead", { projectId: { $ne: null } }, undefined],
  ["none", {}, undefined],
  ["a list", [id], undefined],
  ["null", null, undefined],
])("the log shows the project of a message with %s", (_, data, project) => {
  expect(projectOf(data)).toBe(project);
});

test("a message that cannot be parsed has no project", () => {
  expect(projectOf(undefined)).toBeUndefined();
});
