import { expect, test } from "vitest";
import { parseDuration } from "./duration.ts";
import { ChangeProject } from "./http/v1/admin.ts";

test.each([
  ["90m", 5_400_000],
  ["36h", 129_600_000],
  ["30d", 2_592_000_000],
  ["2w", 1_209_600_000],
  ["30", undefined],
  ["-30d", undefined],
  ["30s", undefined],
  ["10000d", undefined],
  ["", undefined],
])("%s is %s ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each(["7d", "90d", "26w", "3650d", null])("a project may have stale_after %s", (staleAfter) => {
  expect(ChangeProject.safeParse({ project: { stale_after: staleAfter } }).success).toBe(true);
});

test.each(["6d", "3651d", "200h", "d", "90", 90])("and not %s", (staleAfter) => {
  expect(ChangeProject.safeParse({ project: { stale_after: staleAfter } }).error?.issues[0]?.path).toEqual([
    "project",
    "stale_after",
  ]);
});
