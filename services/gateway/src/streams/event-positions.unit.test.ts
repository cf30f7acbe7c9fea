import { randomBytes } from "node:crypto";
import { newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { createEventPositions } from "./event-positions.ts";

const [one, other] = [newProjectId(new Date()), newProjectId(new Date())];
const [older, newer] = ["k1", "k2"].map((id) => ({ id, secret: randomBytes(32) })) as [
  { id: string; secret: Buffer },
  { id: string; secret: Buffer },
];
const { seal, open } = createEventPositions([older])(one);

test.each([
  { sequence: 0 },
  { sequence: 1, part: 1 },
  { sequence: 4_294_967_296, part: 65_535 },
  { sequence: 281_474_976_710_655 },
])("every gateway with the key reads a position: %s", (position) => {
  expect(seal(position)).toMatch(/^[A-Za-z0-9_-]{48}$/);
  expect(createEventPositions([older])(one).open(seal(position))).toEqual(position);
});

test("the same position gets different texts, and a greater one no greater text", () => {
  const sealed = Array.from({ length: 100 }, () => seal({ sequence: 7 }));
  expect(new Set(sealed).size).toBe(100);
  const ordered = Array.from({ length: 100 }, (_, sequence) => seal({ sequence }));
  expect(ordered.toSorted()).not.toEqual(ordered);
});

test("a position is read after a rotation of the keys, until the old key is gone", () => {
  const position = seal({ sequence: 7 });
  expect(createEventPositions([newer, older])(one).open(position)).toEqual({ sequence: 7 });
  expect(createEventPositions([newer])(one).open(position)).toBeUndefined();
});

test("a position of another project, a changed one and a number are refused", () => {
  const position = seal({ sequence: 7 });
  expect(createEventPositions([older])(other).open(position)).toBeUndefined();
  for (const changed of ["", "7", `${position}A`, position.slice(1), `${position}.0`, `${position.slice(0, -1)}=`])
    expect(open(changed)).toBeUndefined();
  for (let at = 0; at < position.length - 1; at++) {
    const letter = position[at] === "A" ? "B" : "A";
    expect(open(position.slice(0, at) + letter + position.slice(at + 1))).toBeUndefined();
  }
});
