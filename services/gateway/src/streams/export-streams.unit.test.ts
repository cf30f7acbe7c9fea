import { fromCsvText } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { acceptsGzip, preferredFormat, rowFormat } from "./export-streams.ts";

const Row = z.object({ id: z.string(), text: z.string().optional(), data: z.unknown() });

/** Decodes a cell of RFC 4180. */
const parseCell = (cell: string): string => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);

describe("CSV", () => {
  const csv = rowFormat("csv", Row);
  const line = (row: object) => csv.line(JSON.stringify(row));

  test("has a column for each field, JSON for lists and objects, and nothing for what is absent", () => {
    expect(csv.head).toBe("id,text,data\r\n");
    expect(line({ id: "a", text: "x", data: { b: [1] } })).toBe('a,x,"{""b"":[1]}"\r\n');
    expect(line({ id: "a", data: null, other: 1 })).toBe("a,,\r\n");
    expect(line({ id: "a", data: ["x", "y"] })).toBe('a,,"[""x"",""y""]"\r\n');
  });

  test.each(["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1"])("a cell that begins as %j gets a ' before it", (text) => {
    const [, cell = ""] = line({ id: "a", text }).split(/^a,|,\r\n$/);
    expect(parseCell(cell)).toBe(`'${text}`);
  });

  test.each([
    ["fcm;=cmd|'/C_calc'!A0;z", "fcm;'=cmd|'/C_calc'!A0;z"],
    ["a\t=1", "a\t'=1"],
    ["a\r\n-1\n@x", "a\r\n'-1\n'@x"],
    ['a;"=1"', `a;'"=1"`],
    ["a;;'+1", "a;;''+1"],
    ["a=1;b+2 -3", "a=1;b+2 -3"],
  ])("%j has a ' before what another list separator makes a formula: %j", (text, expected) => {
    const [, cell = ""] = line({ id: "a", text }).split(/^a,|,\r\n$/);
    expect(parseCell(cell)).toBe(expected);
  });

  test("every text is what it was after a spreadsheet's quote is removed", () => {
    const texts = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."'=+-@\t\r\n\",;x") }));
    fc.assert(
      fc.property(texts, (text) => {
        const row = line({ id: "a", text });
        const cell = parseCell(row.slice("a,".length, -",\r\n".length));
        expect(fromCsvText(cell)).toBe(text);
        // As the import and as spreadsheets with other list separators read it.
        for (const read of [cell, row])
          for (const part of read.split(/[;\t\r\n]/)) expect(part).not.toMatch(/^"*[=+\-@]/);
      }),
    );
  });
});

test("NDJSON is a line for each row, whatever the row has", () => {
  const { head, line } = rowFormat("ndjson", Row);
  expect(head + line(JSON.stringify({ id: "a\n", data: "=1" }))).toBe('{"id":"a\\n","data":"=1"}\n');
});

test.each([
  [undefined, "ndjson"],
  ["*/*", "ndjson"],
  ["text/csv", "csv"],
  ["Text/CSV; q=0.9, application/x-ndjson;q=0.5", "csv"],
  ["text/csv;q=0.5, application/x-ndjson", "ndjson"],
  ["text/csv;q=0", "ndjson"],
  ["text/html,application/xhtml+xml", "ndjson"],
] as const)("Accept: %s prefers %s", (accept, format) => expect(preferredFormat(accept)).toBe(format));

test.each([
  [undefined, false],
  ["gzip, deflate, br", true],
  ["GZIP;q=0.5", true],
  ["gzip;q=0", false],
  ["br", false],
] as const)("Accept-Encoding: %s takes gzip: %s", (header, takes) => expect(acceptsGzip(header)).toBe(takes));
