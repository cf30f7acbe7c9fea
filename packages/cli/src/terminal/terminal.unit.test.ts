import { expect, test } from "vitest";
import { plot } from "./plot.ts";
import { createTable, fields } from "./table.ts";
import { createTerminal, type Surroundings, type Terminal } from "./terminal.ts";
import { columnsOf, cut, plain, show } from "./text.ts";

type Written = { stdout: string; stderr: string };

const surroundings = (
  written: Written,
  { isTTY = true, columns = 40, env = {} }: { isTTY?: boolean; columns?: number; env?: Record<string, string> } = {},
): Surroundings => {
  const stream = (name: keyof Written) => ({
    isTTY,
    columns,
    write: (text: string) => {
      written[name] += text;
      return true;
    },
  });
  return { env, stdin: { isTTY }, stdout: stream("stdout"), stderr: stream("stderr") } as unknown as Surroundings;
};
const terminalOf = (options?: Parameters<typeof surroundings>[1], colors?: boolean): Terminal =>
  createTerminal(surroundings({ stdout: "", stderr: "" }, options), colors);

const esc = "\u001b";

test.each([
  ["at a terminal", {}, true, true],
  ["into a pipe", { isTTY: false }, true, false],
  ["with NO_COLOR", { env: { NO_COLOR: "1" } }, true, false],
  ["with an empty NO_COLOR", { env: { NO_COLOR: "" } }, true, true],
  ["at a dumb terminal", { env: { TERM: "dumb" } }, true, false],
  ["with --no-color", {}, false, false],
])("%s there are colours or not", (_, options, colors, expected) => {
  const painted = terminalOf(options, colors).paint("red", "x");
  expect(painted.includes(esc)).toBe(expected);
});

test("progress is one line that goes away, and nothing without a terminal", () => {
  const written = { stdout: "", stderr: "" };
  const terminal = createTerminal(surroundings(written));
  terminal.progress("x".repeat(100));
  terminal.print("done");
  expect(written.stdout).toBe("done\n");
  expect(written.stderr).toBe(`\r${esc}[K${"x".repeat(39)}\r${esc}[K`);
  const piped = { stdout: "", stderr: "" };
  createTerminal(surroundings(piped, { isTTY: false })).progress("x");
  expect(piped.stderr).toBe("");
});

const id = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";
const columns = [
  { title: "ID", value: (row: { id: string }) => row.id },
  { title: "STATUS", value: () => "completed" },
  { title: "DEVICES", value: () => 1_204, right: true },
  { title: "TITLE", value: () => "A title of some length" },
];

test("a table fits 40 columns: the id stands above the rest", () => {
  const table = createTable(columns, terminalOf({}, false));
  const row = [id, "  completed    1,204  A title of some l…"];
  expect(table([{ id }])).toEqual(["ID", "  STATUS     DEVICES  TITLE", ...row]);
  expect(table([{ id }])).toEqual(row);
});

test("a table fits 20 columns: what has no room is left out", () => {
  expect(createTable(columns, terminalOf({ columns: 20 }, false))([{ id: "ntf_1" }])).toEqual([
    ...["ID", "  STATUS     DEVICES", "ntf_1", "  completed    1,204"],
  ]);
});

test("at a terminal a time is short, in UTC, and never cut: a date where there is no room; elsewhere it is exact", () => {
  const at = "2030-01-31T09:00:17.123Z";
  const timed = [...columns.slice(0, 3), { title: "AT", value: () => at }, { title: "OPENED", value: () => undefined }];
  const rowAt = (options: Parameters<typeof terminalOf>[0]) => createTable(timed, terminalOf(options, false))([{ id }]);
  expect(rowAt({ columns: 90 })[1]).toBe(`${id}  completed    1,204  2030-01-31 09:00Z  –`);
  expect(rowAt({ columns: 70 })[1]).toBe(`${id}  completed    1,204  2030-01-31  –`);
  expect(rowAt({ columns: 50 })[3]).toBe("  completed    1,204  2030-01-31 09:00Z  –");
  expect(rowAt({ isTTY: false })[1]).toContain(at);
});

test("a table fits 70 columns: the widest column gives way", () => {
  const [head, row] = createTable(columns, terminalOf({ columns: 70 }, false))([{ id }]);
  expect(head).toBe(`ID${" ".repeat(30)}STATUS     DEVICES  TITLE`);
  expect(row).toBe(`${id}  completed    1,204  A title of some l…`);
});

test("a number and a column's title are never cut", () => {
  const [head, row] = createTable(columns, terminalOf({ columns: 55 }, false))([{ id }]);
  expect(head).toBe(`ID${" ".repeat(30)}STATUS  DEVICES  TITLE`);
  expect(row).toBe(`${id}  compl…    1,204  A tit…`);
});

test("without a terminal nothing is cut off, and there are no colours", () => {
  const [head, row] = createTable(columns, terminalOf({ isTTY: false }))([{ id }]);
  expect(row).toContain("A title of some length");
  expect(head).not.toContain(esc);
});

test("later pages take the widths of the first, without a title", () => {
  const table = createTable(columns, terminalOf({ isTTY: false }));
  const [, first = ""] = table([{ id }]);
  expect(table([{ id: "ntf_1" }])).toEqual([
    `ntf_1${first
      .slice(5)
      .replace(id.slice(5), "")
      .padStart(first.length - 5)}`,
  ]);
});

test("what strangers wrote cannot move the cursor or take two lines", () => {
  expect(plain(`a${esc}[2Jb\r\nc\u202ed\u009b1m`)).toBe("a [2Jb c d 1m");
  expect(show({ name: `x${esc}` })).toBe('{"name":"x\\u001b"}');
  const lines = createTable([{ title: "T", value: () => `one\ntwo${esc}[31m` }], terminalOf({}, false))([{}]);
  expect(lines[1]).toBe("one two [31m");
});

test.each([
  ["日本語のタイトル", 8, "日本語…"],
  ["👩‍👩‍👧 family", 5, "👩‍👩‍👧 f…"],
  ["short", 5, "short"],
])("%s is cut to %i columns", (text, width, expected) => {
  expect(cut(text, width)).toBe(expected);
  expect(columnsOf(cut(text, width))).toBeLessThanOrEqual(width);
});

test("a record leaves out what is not there, and shows what is empty", () => {
  const text = fields(
    [
      ["id", "x"],
      ["absent", undefined],
      ["user", null],
      ["topics", []],
      ["devices", 12_000],
    ],
    terminalOf({}, false),
  );
  expect(text).toBe("id       x\nuser     –\ntopics   –\ndevices  12,000");
});

test("a plot fits 40 columns, and its highest column is full", () => {
  const values = Array.from({ length: 24 }, (_, hour) => hour * 50);
  const lines = plot(values, { width: 40, height: 3, ends: ["01-30 10:00", "01-31 09:00"] });
  expect(lines).toEqual([
    "1,150                 ▁▂▃▄▅▆▇█",
    "              ▁▂▃▄▅▆▇█████████",
    "       ▂▃▄▅▆▇█████████████████",
    "      01-30 10:00  01-31 09:00",
  ]);
});

test.each([1, 2, 7, 40, 1_000])("a plot of %i intervals fits 40 columns", (intervals) => {
  const values = Array.from({ length: intervals }, (_, at) => at + 1);
  const lines = plot(values, { width: 40, height: 4, ends: ["2030-01-01", "2033-01-01"] });
  expect(lines).toHaveLength(5);
  expect(Math.max(...lines.map(columnsOf))).toBeLessThanOrEqual(40);
  expect(lines.join("")).toContain("█");
});

test("a plot of nothing is empty, and one of a single push is not", () => {
  expect(
    plot([0, 0, 0], { width: 40, height: 2, ends: ["a", "b"] })
      .slice(0, 2)
      .join("")
      .trim(),
  ).toBe("0");
  expect(plot([0, 1, 0], { width: 40, height: 2, ends: ["a", "b"] }).join("")).toContain("█");
});
