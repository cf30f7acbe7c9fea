import { expect, test } from "vitest";
import { resumeAfter } from "./event-streams.ts";

test.each([
  ["the last one", 20, { first: 5, last: 20 }],
  ["one in the middle", 10, { first: 5, last: 20 }],
  ["the last one that is gone, after which all are stored", 4, { first: 5, last: 20 }],
  ["the last one of a stream that is empty by now", 20, { first: 21, last: 20 }],
  ["none yet", 0, { first: 1, last: 0 }],
])("resumes after %s", (_, position, bounds) => {
  expect(resumeAfter(position, bounds)).toBe(position);
});

test.each([
  ["older than the stored events", 3, { first: 5, last: 20 }, "events after it are no longer stored"],
  ["older than a stream that is empty by now", 19, { first: 21, last: 20 }, "are no longer stored"],
  ["of a stream that was recreated", 21, { first: 5, last: 20 }, "this position does not exist"],
])("refuses a position %s", (_, position, bounds, words) => {
  expect(() => resumeAfter(position, bounds)).toThrow(
    expect.objectContaining({ code: "position-gone", message: expect.stringContaining(words) }),
  );
});
