import { expect, test } from "vitest";
import { isRoutineBefore, plainLine } from "./plain-line.ts";

test.each([
  [
    '{"level":"info","time":"2026-01-02T03:04:05.678Z","service":"gateway","address":"http://x:1","status":200,"msg":"listening"}',
    "03:04:05 info  listening address=http://x:1 status=200",
  ],
  [
    '{"level":"error","time":"2026-01-02T03:04:05.678Z","err":{"type":"Error","message":"no way","stack":"…"},"msg":"failed"}',
    '03:04:05 error failed err="no way"',
  ],
  [
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","err":{"type":"Error","message":"no","stack":"…","error":"invalid_client","status":401,"cause":{}}}',
    '03:04:05 warn  err="no (error: invalid_client, status: 401)"',
  ],
  [
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","why":"two words","ids":["a"]}',
    '03:04:05 warn  why="two words" ids=["a"]',
  ],
  [
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","why":"\\u001b[2J\\u202e","msg":"\\u009b2J"}',
    "03:04:05 warn  \\u009b2J why=\\u001b[2J\\u202e",
  ],
  ["not JSON\u001b[2J", "not JSON\\u001b[2J"],
  ["Error: not JSON", "Error: not JSON"],
  ['{"level":30,"msg":"not ours"}', '{"level":30,"msg":"not ours"}'],
  ["{broken", "{broken"],
])("%s", (line, expected) => {
  expect(plainLine(line)).toBe(expected);
});

test.each([
  ['{"level":"info","time":"2026-01-02T03:04:05.678Z","msg":"request"}', true, false],
  ['{"level":"debug","time":"2026-01-02T03:04:05.678Z","msg":"query"}', true, false],
  ['{"level":"warn","time":"2026-01-02T03:04:05.678Z","msg":"slow"}', false, false],
  ['{"level":"info","msg":"without a time"}', false, false],
  ["Error: not JSON", false, false],
])("%s is routine a second later and at its own time: %s, %s", (line, later, then) => {
  const at = Date.parse("2026-01-02T03:04:05.678Z");
  expect([isRoutineBefore(line, at + 1_000), isRoutineBefore(line, at)]).toEqual([later, then]);
});
