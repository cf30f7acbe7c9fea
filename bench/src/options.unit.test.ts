import { expect, test } from "vitest";
import { help, readOptions } from "./options.ts";
import type { Row } from "./row.ts";

const rows: readonly Row[] = ["peer", "direct", "batch"].map((name) => ({
  name,
  about: `about ${name}`,
  measure: async function* () {},
}));
const read = (...args: string[]) => readOptions(args, rows, false);
const namesOf = (options: { rows: readonly Row[] }) => options.rows.map(({ name }) => name);

test("all rows are measured, in their order; the peer's only where a peer is named", () => {
  expect(namesOf(read())).toEqual(["direct", "batch"]);
  expect(namesOf(readOptions([], rows, true))).toEqual(["peer", "direct", "batch"]);
  expect(namesOf(read("--only", "batch,direct"))).toEqual(["direct", "batch"]);
});

test.each([
  [["--only", "direct,nope"], "--only: there is no nope; there are peer, direct, batch"],
  [["--runs", "0"], '--runs: "0" is not a whole number above 0'],
  [["--runs", "1,2"], "--runs: takes one number, not 1,2"],
  [["--devices", "10,x"], '--devices: "x" is not a whole number above 0'],
  [["--write", "--profile"], "--profile: slows what it measures"],
  [["--rums", "1"], "Unknown option '--rums'"],
])("%j is refused: %s", (args, message) => {
  expect(() => read(...args)).toThrow(message);
});

test("help lists every row, and every option with what it is by default", () => {
  const text = help(rows);
  for (const { name, about } of rows) expect(text).toMatch(new RegExp(`^ {2}${name} +${about}$`, "m"));
  expect(text).toMatch(/^ {2}--runs … +how often each figure is measured \(3\)$/m);
  expect(text).toMatch(/^ {2}--profile +keeps V8 CPU profiles/m);
});
