import { describe, expect, test } from "vitest";
import { evaluateGoal, goals } from "./goals.ts";
import { page } from "./page.ts";
import type { Figure, Table } from "./table.ts";

const table = (title: string, ...figures: [Figure, ...number[]][]): Table => ({
  title,
  lines: figures.map(([figure, ...values]) => ({ label: `  ${figure}   µs`, values, figure })),
});
const pageOf = (...tables: Table[]) =>
  page({
    tables,
    runs: 3,
    args: ["--only", "direct", "--write"],
    versions: { broker: "nats-server 2.15.2", database: "FerretDB 1.24.0" },
    at: new Date("2030-01-31T09:00:00Z"),
  });
const rowsOf = (text: string, start: string) => text.split("\n").filter((line) => line.startsWith(`|${start}`));

describe("a goal", () => {
  const of = (work: string) => {
    const goal = goals.find((one) => one.work === work);
    if (goal === undefined) throw new Error(`no goal of ${work}`);
    return goal;
  };
  const singles = of("single sends, `device:`");

  test.each([
    [490, 0.245, "missed"],
    [500, 0.25, "threshold"],
    [999, 0.4995, "threshold"],
    [1000, 0.5, "goal"],
  ])("of %d sends beside 2,000 of the peer is %d × and %s", (rate, reached, state) => {
    const tables = [table("peer", ["peer-singles", 1000, 2000, 9000]), table("direct", ["direct", rate])];
    expect(evaluateGoal(singles, tables)).toEqual({ reached, state });
  });

  test.each([
    [2400, "missed"],
    [1200, "threshold"],
    [600, "goal"],
  ])("of %d µs, where less is better, is %s", (micros, state) => {
    const cpu = of("CPU of a single send");
    expect(evaluateGoal(cpu, [table("direct", ["direct-cpu", micros])])).toEqual({ reached: micros, state });
  });

  test("without its row or its peer is not measured", () => {
    expect(evaluateGoal(singles, [table("direct", ["direct", 500])])).toEqual({ state: "not measured" });
    expect(evaluateGoal(singles, [])).toEqual({ state: "not measured" });
  });

  test("of several audiences is that of the last, the largest", () => {
    const tables = [
      table("peer", ["peer-broadcast", 100]),
      table("10,000", ["broadcast", 300]),
      table("100,000", ["broadcast", 120]),
    ];
    expect(evaluateGoal(of("a large topic"), tables)).toMatchObject({ reached: 1.2, state: "missed" });
  });
});

describe("docs/reference/performance.md", () => {
  test("says the command, the machine and what runs on it", () => {
    const text = pageOf();
    expect(text).toMatch(/^# Performance\n\nOn \d+ cores \(.+\), \d+ GB, /);
    expect(text).toContain("`npm run bench -- --only direct --write` on 2030-01-31: medians of 3 runs");
    expect(text).toContain(`With nats-server 2.15.2, FerretDB 1.24.0 and Node ${process.version}.`);
    expect(text).toContain("](performance.svg)");
  });

  test("begins with what Herald does, and ends with the goals", () => {
    const text = pageOf(table("one device at a time", ["direct", 300], ["latency-p50", 8]));
    expect(rowsOf(text, "sends to one device each")).toEqual(["|sends to one device each, pushed|300 /s|"]);
    expect(rowsOf(text, "POST to push at rest, p50|")).toEqual(["|POST to push at rest, p50|8 ms|"]);
    expect(rowsOf(text, "devices that register")).toEqual(["|devices that register||"]);
    expect(text.match(/^## .*/gm)).toEqual(["## One device at a time", "## Goals"]);
  });

  test("says of each goal whether the run reached it", () => {
    const text = pageOf(table("peer", ["peer-singles", 2000]), table("direct", ["direct", 300], ["direct-cpu", 900]));
    expect(rowsOf(text, "single sends, `device:`")).toEqual([
      "|single sends, `device:`, × peer|≥ 0.25|0.5|0.15|missed|",
    ]);
    expect(rowsOf(text, "CPU of a single send")).toEqual(["|CPU of a single send, µs|≤ 1200|600|900|threshold|"]);
    expect(rowsOf(text, "Web Push")).toEqual(["|Web Push, /s|≥ 7962|14000||not measured|"]);
  });

  test("keeps the figures of rows that were not run", () => {
    const first = pageOf(
      table("peer", ["peer-singles", 2000]),
      table("one device each: alone", ["direct", 300], ["direct-cpu", 900]),
      table("one device each: in batches", ["batch", 700]),
    );
    const text = page({
      tables: [
        table("imports", ["imports", 4000]),
        table("peer", ["peer-singles", 2500]),
        table("one device each: in batches", ["batch", 800]),
      ],
      runs: 1,
      args: [],
      versions: { broker: "nats-server 2.15.2", database: "FerretDB 1.24.0" },
      at: new Date("2030-02-01T09:00:00Z"),
      earlier: first,
    });
    expect(text.match(/^## .*/gm)).toEqual(["## Peer", "## One device each", "## Imports", "## Goals"]);
    expect(rowsOf(text, "alone")).toEqual(["|alone|300|900||"]);
    expect(rowsOf(text, "in batches")).toEqual(["|in batches|||800|"]);
    expect(text).toContain("|peer-singles µs|2500|");
    expect(rowsOf(text, "sends to one device each")).toEqual(["|sends to one device each, pushed|300 /s|"]);
    expect(rowsOf(text, "single sends, `device:`")).toEqual(rowsOf(first, "single sends, `device:`"));
    expect(rowsOf(text, "imported devices")[0]).toContain("|4000|");
  });

  test("has a table for each part, with a row for each of its tables", () => {
    const text = pageOf(
      table("one device each: alone", ["direct", 3, 1, 2], ["direct-cpu", 9, 8, 7]),
      table("one device each: in batches", ["direct", 5]),
    );
    expect(text).toContain(
      [
        "## One device each",
        "",
        "||direct µs|direct-cpu µs|",
        "|---|---:|---:|",
        "|alone|2 (1–3)|8|",
        "|in batches|5||",
      ].join("\n"),
    );
  });

  test("shows a line as a row, or at its row and column", () => {
    const lines = [
      { label: "first page: p50 ms", values: [3] },
      { label: "first page: p99 ms", values: [9] },
    ];
    expect(pageOf({ title: "lists", lines })).toContain("||p50 ms|p99 ms|\n|---|---:|---:|\n|first page|3|9|");
    expect(pageOf(table("lists", ["exports", 1, 3]))).toContain("|exports µs|1 (1–3)|");
  });

  test("shows the processes of a table in one cell, in one order", () => {
    const line = (label: string, ...values: number[]) => ({ label, values });
    const lines = [
      line("  registry µs a device", 8),
      line("  gateway  µs a device", 5, 6, 7),
      line("  load     µs a device", 4),
      line("  gateway  peak MB", 100),
    ];
    const text = pageOf({ title: "imports", lines });
    expect(rowsOf(text, "each process")).toEqual([
      "|each process, µs a device|6/8/–/–/–/–/–/–/4|",
      "|each process, peak MB|100|",
    ]);
  });
});
