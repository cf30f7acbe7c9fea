import fc from "fast-check";
import { expect, test } from "vitest";
import { csvDelimiter, csvRow } from "./csv-row.ts";

test.each([
  ["", [""]],
  ["a,b", ["a", "b"]],
  ["a,,", ["a", "", ""]],
  ['"a,b",c', ["a,b", "c"]],
  ['"","a""b"', ["", 'a"b']],
  ['"""",', ['"', ""]],
  ['"a\r\nb"', ["a\r\nb"]],
  ['"a', "broken"],
  ['"a"b', "broken"],
  ['a"b', "broken"],
  [",,,", "too-many"],
])("%j", (text, cells) => {
  expect(csvRow(text, 3)).toEqual(cells);
});

test("reads what is written as RFC 4180 says", () => {
  const write = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[ab",\r\n']{0,6}$/), { minLength: 1, maxLength: 5 }), (cells) => {
      expect(csvRow(cells.map(write).join(","), 5)).toEqual(cells);
    }),
  );
});

test.each([
  ["token;platform", ";", ["t,1", "ios"]],
  ["token\tplatform", "\t", ["t,1", "ios"]],
  ["token,platform;os", ",", ["t", "1;ios"]],
  ['"a,b";platform', ";", ["t,1", "ios"]],
  ["token", ",", ["t", "1;ios"]],
])("cells under the header %j", (header, delimiter, cells) => {
  expect(csvDelimiter(header)).toBe(delimiter);
  expect(csvRow(delimiter === "," ? "t,1;ios" : `t,1${delimiter}"ios"`, 3, delimiter)).toEqual(cells);
});
