import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { executedFilesOfSends, filesOfEach } from "./files-of-a-send.ts";

const list = "bench/files-of-a-send.txt";
const listed = new Set(
  readFileSync(join(import.meta.dirname, "../..", list), "utf8")
    .trim()
    .split("\n"),
);

test("a plain send runs the files of the list and no other: a feature that it does not use is a stage beside it", async () => {
  const windows = await executedFilesOfSends(5);
  expect(
    filesOfEach(windows, 0).filter((file) => !listed.has(file)),
    `not in ${list}: put what they do beside the path of a send, or, if every send needs it, add them`,
  ).toEqual([]);
  const ever = new Set([...windows.sends, ...windows.rests].flatMap((files) => [...files]));
  expect(
    [...listed].filter((file) => !ever.has(file)),
    `no send runs them any more: remove them from ${list}`,
  ).toEqual([]);
});
