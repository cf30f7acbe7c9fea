import { expect, test } from "vitest";
import { resumeAfter } from "./event-streams.ts";

test.each([
  ["the last one", { sequence: 20 }, { first: 5, last: 20 }],
  ["one in the middle", { sequence: 10 }, { first: 5, last: 20 }],
  ["the last one that is gone, after which all are stored", { sequence: 4 }, { first: 5, last: 20 }],
  ["the last one of a stream that is empty by now", { sequence: 20 }, { first: 21, last: 20 }],
  ["an event of the first message, whose others are stored", { sequence: 5, part: 2 }, { first: 5, last: 20 }],
  ["none yet", { sequence: 0 }, { first: 1, last: 0 }],
])("resumes after %s", (_, position, bounds) => {
  expect(resumeAfter(position, bounds)).toEqual(position);
});

test.each([
  ["older than the stored events", { sequence: 3 }, { first: 5, last: 20 }, "events after it are no longer stored"],
  ["in a message that is gone", { sequence: 4, part: 2 }, { first: 5, last: 20 }, "are no longer stored"],
  ["older than a stream that is empty by now", { sequence: 19 }, { first: 21, last: 20 }, "are no longer stored"],
  ["of a stream that was recreated", { sequence: 21 }, { first: 5, last: 20 }, "this position does not exist"],
])("refuses a position %s", (_, position, bounds, words) => {
  expect(() => resumeAfter(position, bounds)).toThrow(
    expect.objectContaining({ code: "position-gone", message: expect.stringContaining(words) }),
  );
});
