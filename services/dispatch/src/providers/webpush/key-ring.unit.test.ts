import { expect, test } from "vitest";
import {
  findKey,
  keyFor,
  keysOf,
  makeCurrent,
  newRing,
  newVapidKeys,
  promote,
  retire,
  stage,
  toRingKey,
} from "./settings.ts";

const day = (number: number) => new Date(Date.UTC(2026, 0, number));
const fresh = () => toRingKey(newVapidKeys(), day(1));
const first = newRing(newVapidKeys(), day(1));
const statusOf = (ring: Parameters<typeof keysOf>[0]) =>
  Object.fromEntries(keysOf(ring).map(({ status, key }) => [key.id, status]));

test("a rotation, step by step: no key is removed while it is in use", () => {
  const [old, key] = [first.current, fresh()];
  const staged = stage(first, key);
  expect(statusOf(staged)).toEqual({ [key.id]: "next", [old.id]: "current" });
  expect([keyFor(staged, old.id), keyFor(staged, key.id)]).toEqual([old, key]);

  const promoted = promote(staged, key.id, day(2));
  expect(statusOf(promoted)).toEqual({ [key.id]: "current", [old.id]: "earlier" });
  expect(promoted.next).toBeUndefined();
  expect(promoted.current).toEqual({ ...key, current_since: day(2).toISOString() });
  expect(keyFor(promoted, old.id)).toEqual(old);

  const retired = retire(promoted, old.id);
  expect(statusOf(retired)).toEqual({ [key.id]: "current" });
  expect(retired.retired).toEqual([old.id]);
  expect(keyFor(retired, old.id)).toBeUndefined();
  expect(JSON.stringify(retired)).not.toContain(old.private_key);
});

test("each step may be repeated", () => {
  const key = fresh();
  const staged = stage(first, key);
  expect(stage(staged, key)).toBe(staged);
  const promoted = promote(staged, key.id, day(2));
  expect(promote(promoted, key.id, day(3))).toBe(promoted);
  const retired = retire(promoted, first.current.id);
  expect(retire(retired, first.current.id)).toBe(retired);
});

test("a rotation can be reversed", () => {
  const key = fresh();
  const back = promote(promote(stage(first, key), key.id, day(2)), first.current.id, day(3));
  expect(statusOf(back)).toEqual({ [first.current.id]: "current", [key.id]: "earlier" });
  expect(back.current).toMatchObject({ created_at: day(1).toISOString(), current_since: day(3).toISOString() });
  expect(statusOf(retire(stage(first, key), key.id))).toEqual({ [first.current.id]: "current" });
});

test("subscriptions that name no key, or an unknown one, always use the first key", () => {
  const promoted = makeCurrent(first, fresh(), day(2));
  expect(keyFor(promoted, undefined)).toEqual(first.current);
  expect(keyFor(promoted, "0123456789abcdef")).toEqual(first.current);
  const retired = retire(promoted, first.current.id);
  expect([keyFor(retired, undefined), keyFor(retired, "0123456789abcdef")]).toEqual([undefined, undefined]);
  expect(keyFor(makeCurrent(retired, first.current, day(3)), undefined)?.id).toBe(first.current.id);
});

test.each([
  ["a second next key", () => stage(stage(first, fresh()), fresh()), "vapid-key-staged", /is staged already/],
  ["the current key again", () => stage(first, first.current), "vapid-key-staged", /has this one already, as current/],
  ["the current one retired", () => retire(first, first.current.id), "vapid-key-current", /make another one current/],
  [
    "a stranger's id",
    () => promote(first, "0123456789abcdef", day(2)),
    "vapid-key-not-found",
    /^key: vapid key not found$/,
  ],
  [
    "a retired one back",
    () => promote(retire(makeCurrent(first, fresh(), day(2)), first.current.id), first.current.id, day(3)),
    "vapid-key-not-found",
    /was retired/,
  ],
])("refuses %s in words", (_, work, code, words) => {
  expect(work).toThrow(expect.objectContaining({ code, message: expect.stringMatching(words) }));
});

test("ten keys are enough", () => {
  let ring = first;
  for (let at = 1; at < 10; at++) ring = makeCurrent(ring, fresh(), day(at));
  expect(keysOf(ring)).toHaveLength(10);
  expect(() => stage(ring, fresh())).toThrow(/10 keys already/);
  expect(() => makeCurrent(ring, fresh(), day(20))).toThrow(/10 keys already/);
  const oldest = first.current.id;
  expect(findKey(stage(retire(ring, oldest), fresh()), oldest)).toBeUndefined();
});
