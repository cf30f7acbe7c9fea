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
const rowsOf = (text: string, start: string) => text.split("\n").filter((line) => line.startsWith(`| ${start}`));

describe("a goal", () => {
  const of = (work: string) => {
    const goal = goals.find((one) => one.work === work);
    if (goal === undefined) throw new Error(`no goal of ${work}`);
    return goal;
  };
  const singles = of("single sends to one `device:` target each");

  test.each([
    [490, 0.245, "not reached"],
    [500, 0.25, "threshold reached"],
    [999, 0.4995, "threshold reached"],
    [1000, 0.5, "goal reached"],
  ])("of %d sends beside 2,000 of the peer is %d × and %s", (rate, reached, state) => {
    const tables = [table("peer", ["peer-singles", 1000, 2000, 9000]), table("direct", ["direct", rate])];
    expect(evaluateGoal(singles, tables)).toEqual({ reached, ratio: reached / 0.25, state });
  });

  test.each([
    [2400, 0.5, "not reached"],
    [1200, 1, "threshold reached"],
    [600, 2, "goal reached"],
  ])("of %d µs, where less is better, has %d × of its threshold and is %s", (micros, ratio, state) => {
    const cpu = of("CPU of a single send, all processes and the load");
    expect(evaluateGoal(cpu, [table("direct", ["direct-cpu", micros])])).toEqual({ reached: micros, ratio, state });
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
    expect(evaluateGoal(of("a topic's devices, pushes"), tables)).toMatchObject({ reached: 1.2, state: "not reached" });
  });
});

describe("docs/reference/performance.md", () => {
  test("says the command, the machine and what runs on it", () => {
    const text = pageOf();
    expect(text).toContain(
      "Written by `npm run bench -- --only direct --write` on 2030-01-31; each figure from 3 runs. Figures of rows\nthat it did not run are from earlier runs.",
    );
    expect(text).toMatch(/\| machine \| \d+ cores \(.+\), \d+ GB, /);
    expect(text).toContain("| broker | nats-server 2.15.2 |");
    expect(text).toContain("| database | FerretDB 1.24.0 |");
    expect(text).toContain(`| runtime | Node ${process.version} |`);
    expect(text).toContain("](performance.svg)");
  });

  test("says of each goal whether the run reached it", () => {
    const text = pageOf(table("peer", ["peer-singles", 2000]), table("direct", ["direct", 300], ["direct-cpu", 900]));
    expect(rowsOf(text, "single sends to one `device:`")).toEqual([
      "| single sends to one `device:` target each | ≥ 0.25 × peer | ≥ 0.5 × peer | 0.15 × peer | 0.60 | not reached |",
    ]);
    expect(rowsOf(text, "CPU of a single send")).toEqual([
      "| CPU of a single send, all processes and the load | ≤ 1200 µs | ≤ 600 µs | 900 µs | 1.33 | threshold reached |",
    ]);
    expect(rowsOf(text, "Web Push")).toEqual(["| Web Push | ≥ 7962 /s | ≥ 14000 /s |  |  | not measured |"]);
  });

  test("keeps the figures of rows that were not run", () => {
    const first = pageOf(
      table("peer", ["peer-singles", 2000]),
      table("one device at a time", ["direct", 300], ["direct-cpu", 900]),
    );
    const text = page({
      tables: [table("imports", ["imports", 4000]), table("peer", ["peer-singles", 2500])],
      runs: 1,
      args: [],
      versions: { broker: "nats-server 2.15.2", database: "FerretDB 1.24.0" },
      at: new Date("2030-02-01T09:00:00Z"),
      earlier: first,
    });
    expect(text.match(/^## .*/gm)).toEqual([
      "## What the send path must reach",
      "## Imports",
      "## Peer",
      "## One device at a time",
    ]);
    expect(text).toContain("| direct µs | 300 |  |");
    expect(text).toContain("| peer-singles µs | 2500 |  |");
    expect(rowsOf(text, "single sends to one `device:`")).toEqual(rowsOf(first, "single sends to one `device:`"));
    expect(rowsOf(text, "devices imported")[0]).toContain("| 4000 /s |");
  });

  test("has a section for each table, with the median and range of each line", () => {
    const text = pageOf(table("one device at a time", ["direct", 3, 1, 2]));
    expect(text).toContain("## One device at a time\n\n| | median | range |\n");
    expect(text).toContain("| direct µs | 2 | 1–3 |");
  });

  test("shows the processes of a table in one row, and a second group of them in another", () => {
    const line = (label: string, ...values: number[]) => ({ label, values });
    const lines = [
      line("new devices/s", 9, 7),
      line("  gateway  µs a device", 5, 6, 7),
      line("  registry µs a device", 8),
      line("again, devices/s", 20),
      line("  gateway  µs a device", 1),
    ];
    expect(rowsOf(pageOf({ title: "imports", lines }), "")).toEqual(
      expect.arrayContaining([
        "| new devices/s | 7 | 7–9 |",
        "| each process, µs a device | gateway 6, registry 8 |  |",
        "| again, devices/s | 20 |  |",
        "| each process, µs a device | gateway 1 |  |",
      ]),
    );
  });
});
