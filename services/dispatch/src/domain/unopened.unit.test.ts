import { erasedTarget, newDeviceId } from "@herald/contracts";
import { expect, test } from "vitest";
import { collectUnopened, type SentDevice } from "./unopened.ts";

const now = new Date();
const [a, b, c] = [newDeviceId(now), newDeviceId(now), newDeviceId(now)];

const unopened = (targets: readonly string[], ...devices: (Partial<SentDevice> & Pick<SentDevice, "id">)[]) => {
  const collected = collectUnopened(targets, "no-active-device");
  for (const device of devices) collected.add({ userId: undefined, accepted: true, opened: false, ...device });
  return collected.list();
};

test("an open on any device of a user counts, in any order", () => {
  const [one, other] = [
    { id: a, userId: "ann", opened: true },
    { id: b, userId: "ann" },
  ];
  expect(unopened(["user:ann"], one, other)).toEqual([]);
  expect(unopened(["user:ann"], other, one)).toEqual([]);
  expect(unopened(["user:ann"], other)).toEqual([{ user_id: "ann", reason: "unopened" }]);
});

test("one accepted device is enough to be unopened, in any order; without devices there was none", () => {
  const failed = { id: a, userId: "ann", accepted: false };
  const accepted = { id: b, userId: "ann" };
  for (const order of [
    [failed, accepted],
    [accepted, failed],
  ])
    expect(unopened(["user:ann"], ...order)).toEqual([{ user_id: "ann", reason: "unopened" }]);
  expect(unopened(["user:ann", "user:bob"], failed)).toEqual([
    { user_id: "ann", reason: "not-delivered" },
    { user_id: "bob", reason: "no-active-device" },
  ]);
});

test("a device stands for its user, and for itself without one; a row of a retry counts with the first", () => {
  const deferred = { id: a, accepted: false };
  expect(
    unopened(
      [a, `device:${b}`, "token:t", "token:gone", "user:ann"],
      deferred,
      { id: a },
      { id: c },
      { id: b, userId: "ann" },
    ),
  ).toEqual([
    { device_id: a, reason: "unopened" },
    { user_id: "ann", reason: "unopened" },
    { device_id: c, reason: "unopened" },
  ]);
});

test("an erased user's devices are not named, and a device that is a target is", () => {
  expect(unopened([erasedTarget, a], { id: a }, { id: b })).toEqual([{ device_id: a, reason: "unopened" }]);
});
