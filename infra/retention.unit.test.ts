import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buckets, streams } from "@herald/contracts";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** What the tables of the page name in their first column. */
const named = read("docs/how-to/retention.md")
  .split("\n")
  .flatMap((line) => [...(/^\|([^|]*)\|/.exec(line)?.[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));

const sources = execFileSync("git", ["ls-files", "services", "packages/mongo"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => /\/src\/.*(?<!\.test)\.ts$/.test(path));
const collections = new Set(
  sources.flatMap((path) =>
    [...read(path).matchAll(/\.collection(?:<[^>]*>)?\("(\w+)"\)/g)].map(([, name = ""]) => name),
  ),
);

test("the page on retention names every collection, stream and bucket, and no other", () => {
  expect(collections.size).toBeGreaterThan(20);
  // A store of either kind of report is made with its name.
  const stored = [...collections, "opens", "receipts", ...Object.keys(streams), ...Object.keys(buckets)];
  expect([...new Set(named)].sort()).toEqual(stored.sort());
});
