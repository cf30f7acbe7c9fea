import { expect, test } from "vitest";
import { plainLine } from "./plain-line.ts";

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
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","why":"two words","ids":["a"]}',
    '03:04:05 warn  why="two words" ids=["a"]',
  ],
  ["Error: not JSON", "Error: not JSON"],
  ['{"level":30,"msg":"not ours"}', '{"level":30,"msg":"not ours"}'],
  ["{broken", "{broken"],
])("%s", (line, expected) => {
  expect(plainLine(line)).toBe(expected);
});
