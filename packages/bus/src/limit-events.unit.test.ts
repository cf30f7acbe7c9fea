import { expect, test } from "vitest";
import { planEventRemoval, type SubjectUsage } from "./limit-events.ts";

const stored = (project: string, kind: string, messages: number, bytes = 1): SubjectUsage => ({
  ...{ subject: `${project}.${kind}`, project, messages, bytes },
  spare: kind.startsWith("device"),
});

test.each<[string, readonly SubjectUsage[], number, [string, number][]]>([
  ["nothing goes where all have room", [stored("a", "device", 50), stored("b", "device", 50)], 100, []],
  ["no project, nothing", [], 100, []],
  ["who is alone keeps all there is room for", [stored("a", "device", 150)], 100, [["a.device", 100]]],
  [
    "the one that has more than its share loses all that is too much",
    [stored("a", "device", 1_000), stored("b", "device", 30), stored("c", "delivery", 10)],
    100,
    [["a.device", 60]],
  ],
  [
    "two that have more are left with the same",
    [stored("a", "device", 1_000), stored("b", "device", 500), stored("c", "delivery", 20)],
    100,
    [
      ["a.device", 40],
      ["b.device", 40],
    ],
  ],
  [
    "bytes count, not messages",
    [stored("a", "delivery", 10, 100), stored("b", "device", 100, 1)],
    600,
    [["a.delivery", 5]],
  ],
  [
    "what tells of devices goes first, and all else only after the last of it",
    [stored("a", "delivery", 100), stored("a", "device.updated", 30), stored("a", "device.registered", 40)],
    80,
    [
      ["a.device.registered", 0],
      ["a.device.updated", 0],
      ["a.delivery", 80],
    ],
  ],
  [
    "of devices' events the largest kind goes first",
    [stored("a", "delivery", 50), stored("a", "device.updated", 100), stored("a", "device.registered", 10)],
    100,
    [["a.device.updated", 40]],
  ],
])("%s", (_what, all, target, expected) => {
  expect(planEventRemoval(all, target).map(({ subject, keep }) => [subject, keep])).toEqual(expected);
});
