import { isValidElement } from "react";
import { expect, test } from "vitest";
import { bytes, duration, exactTime, Sentence, Status } from "./format.tsx";

test.each([
  [0, "0 B"],
  [1_023, "1023 B"],
  [1_024, "1 KiB"],
  [1_572_864, "1.5 MiB"],
  [268_435_456, "256 MiB"],
  [2 ** 60, "1048576 TiB"],
])("%d bytes are %s", (value, text) => {
  expect(bytes(value)).toBe(text);
});

test.each([
  [0, "0 s"],
  [0.4, "0.4 s"],
  [90, "2 min"],
  [86_400, "1 d"],
])("%d seconds are %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test("a sentence of the API shows times as people write them, and names as code", () => {
  const at = "2030-01-31T09:00:07.000Z";
  const parts = Sentence({ text: `Its target \`user:u_1\` was sent at ${at} to APNs.` });
  expect(
    parts.map((part) => (isValidElement<{ children: string }>(part) ? [part.type, part.props.children] : part)),
  ).toEqual(["Its target ", ["code", "user:u_1"], " was sent at ", exactTime(at), " to APNs."]);
});

test.each([
  ["completed", "good", "completed"],
  ["not_ready", "bad", "not ready"],
  ["not_answering", "bad", "not answering"],
  ["unreachable", "bad", "unreachable"],
  ["paused", "warn", "paused"],
])("the status %s is %s, in the words of the API", (value, tone, words) => {
  expect(Status({ value }).props).toMatchObject({ color: `var(--${tone})`, children: words });
});
