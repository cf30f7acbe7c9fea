import { expect, test } from "vitest";
import { resumeBehind } from "./start-position.ts";

test.each([
  ["the last one", 20, { first: 5, last: 20 }],
  ["one in the middle", 10, { first: 5, last: 20 }],
  ["the last one that is gone, behind which all is kept", 4, { first: 5, last: 20 }],
  ["the last one of a stream that is empty by now", 20, { first: 21, last: 20 }],
  ["none yet", 0, { first: 1, last: 0 }],
])("goes on behind %s", (_, position, bounds) => {
  expect(resumeBehind(position, bounds)).toBe(position);
});

test.each([
  ["older than what is kept", 3, { first: 5, last: 20 }, "events that came after it are not kept any more"],
  ["older than a stream that is empty by now", 19, { first: 21, last: 20 }, "are not kept any more"],
  ["of a stream that was made anew", 21, { first: 5, last: 20 }, "it was not given out here"],
])("says so where it is %s", (_, position, bounds, words) => {
  expect(() => resumeBehind(position, bounds)).toThrow(
    expect.objectContaining({ code: "position-gone", message: expect.stringContaining(words) }),
  );
});
