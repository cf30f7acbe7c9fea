import { expect, test } from "vitest";
import type { Findings, Row } from "./row.ts";
import { type Outcome, page } from "./show.ts";

const row = (name: string): Row => ({
  name,
  fault: `${name} killed`,
  pass: "sends are 202",
  run: () => Promise.reject(),
});
const rows = [row("gateway"), row("broker")];
const [gateway, broker] = rows as [Row, Row];
const fine: Findings = {
  sent: 12,
  final: 12,
  lost: 0,
  repeated: { marked: 3, unmarked: 0 },
  recoveryMs: 2_340,
  problems: [],
  notes: [],
};
const pageOf = (outcomes: readonly Outcome[], before = "", long = false) =>
  page({ outcomes, long, command: "npm run test:faults", at: new Date("2030-01-31") }, rows, before);

test("a row that passed shows its fault, its figures and its form", () => {
  expect(pageOf([{ row: gateway, tookMs: 1, findings: fine }], "", true)).toContain(
    "\n| gateway | gateway killed | sends are 202 | 2.3 s, long |\n",
  );
});

test("a row that failed says why", () => {
  const findings = { ...fine, lost: 2, repeated: { marked: 0, unmarked: 1 }, problems: ["the event is | missing"] };
  expect(pageOf([{ row: broker, tookMs: 1, findings }])).toContain(
    "failed: 2 lost; 1 repeated without a mark; broker: the event is / missing |",
  );
});

test("a row that passes as the one above it does says so", () => {
  const both = rows.map((row) => ({ row, tookMs: 1, findings: fine }));
  expect(pageOf(both)).toContain("\n| broker | broker killed | as above | 2.3 s |");
});

test("a row that did not run keeps its result, under the words that it has now", () => {
  const before = pageOf([
    { row: { ...gateway, fault: "stopped" }, tookMs: 1, findings: fine },
    { row: broker, tookMs: 1, findings: fine },
  ]);
  expect(pageOf([{ row: broker, tookMs: 1, findings: { ...fine, recoveryMs: 700 } }], before)).toMatch(
    /\| gateway \| gateway killed \|.*\| 2\.3 s \|\n\| broker \|.*\| 0\.7 s \|/,
  );
});
