import { expect, test } from "vitest";
import { ownData } from "./own-data.ts";
import { plainValues } from "./typed-values.ts";
import { booleanFrom, timeFrom } from "./values.ts";

test.each([
  [1_706_695_200, "2024-01-31T10:00:00.000Z"],
  ["1706695200", "2024-01-31T10:00:00.000Z"],
  ["1706695200.5", "2024-01-31T10:00:00.500Z"],
  [1_706_695_200_000, "2024-01-31T10:00:00.000Z"],
  ["1706695200000000", "2024-01-31T10:00:00.000Z"],
  ["2024-01-31T10:00:00.123Z", "2024-01-31T10:00:00.123Z"],
  ["2024-01-31T10:00:00.1234567Z", "2024-01-31T10:00:00.123Z"],
  ["2024-01-31 10:00:00 UTC", "2024-01-31T10:00:00.000Z"],
  ["2024-01-31 10:00:00.123456+00", "2024-01-31T10:00:00.123Z"],
  ["2024-01-31T12:00:00+0200", "2024-01-31T10:00:00.000Z"],
  ["2024-01-31 10:00:00 +0000 UTC", "2024-01-31T10:00:00.000Z"],
  ["2024-01-31T10:00", "2024-01-31T10:00:00.000Z"],
  ["2024-01-31", "2024-01-31T00:00:00.000Z"],
  ["Wed, 31 Jan 2024 10:00:00 GMT", "2024-01-31T10:00:00.000Z"],
  ["Wed Jan 31 2024 11:00:00 GMT+0100 (Central European Standard Time)", "2024-01-31T10:00:00.000Z"],
  [{ _seconds: 1_706_695_200, _nanoseconds: 0 }, "2024-01-31T10:00:00.000Z"],
  [{ seconds: 1_706_695_200, nanoseconds: 0 }, "2024-01-31T10:00:00.000Z"],
  ["12", undefined],
  ["2024", undefined],
  ["31/01/2024", undefined],
  ["2024-13-31", undefined],
  ["2024-01-31 10:00:00 CET", undefined],
  ["9999999999999999999999", undefined],
  ["", undefined],
  [{}, undefined],
])("the time %j", (given, time) => {
  expect(timeFrom(given)).toBe(time);
});

test.each([
  ["t", true],
  ["TRUE", true],
  [1, true],
  ["f", false],
  [false, false],
  ["0", false],
  ["maybe", undefined],
])("the boolean %j", (given, value) => {
  expect(booleanFrom(given)).toBe(value);
});

test.each([
  [{ $date: "2024-01-31T10:00:00Z" }, "2024-01-31T10:00:00.000Z"],
  [{ $date: { $numberLong: "1706695200000" } }, "2024-01-31T10:00:00.000Z"],
  [{ $date: 1_706_695_200_000 }, "2024-01-31T10:00:00.000Z"],
  [{ $date: { $numberLong: "-1" } }, "1969-12-31T23:59:59.999Z"],
  [{ $numberInt: "3" }, 3],
  [{ $numberLong: "9007199254740993" }, "9007199254740993"],
  [{ $numberDouble: "NaN" }, "NaN"],
  [{ $numberDecimal: "12.50" }, 12.5],
  [{ $numberDecimal: "0.12345678901234567890" }, "0.12345678901234567890"],
  [{ $oid: "65b8f1e2a1b2c3d4e5f60718" }, "65b8f1e2a1b2c3d4e5f60718"],
  [{ $uuid: "3b241101-e2bb-4255-8caf-4136c566a962" }, "3b241101-e2bb-4255-8caf-4136c566a962"],
  [{ $binary: { base64: "OyQRAeK7QlWMr0E2xWapYg==", subType: "04" } }, "3b241101-e2bb-4255-8caf-4136c566a962"],
  [{ $binary: "AQID", $type: "00" }, "AQID"],
  [{ $timestamp: { t: 1_706_695_200, i: 1 } }, "2024-01-31T10:00:00.000Z"],
  [{ $regularExpression: { pattern: "^a", options: "i" } }, "/^a/i"],
  [{ $regex: "^a", $options: "" }, "/^a/"],
  [{ $symbol: "a" }, "a"],
  [{ a: { $minKey: 1 } }, {}],
  [{ a: [{ b: { $numberInt: "1" } }] }, { a: [{ b: 1 }] }],
  [{ __type: "Date", iso: "2024-01-31T10:00:00.000Z" }, "2024-01-31T10:00:00.000Z"],
  [{ __type: "Bytes", base64: "AQID" }, "AQID"],
  [
    { __type: "Pointer", objectId: "x" },
    { __type: "Pointer", objectId: "x" },
  ],
  [{ $price: 3 }, { $price: 3 }],
  [
    { $ref: "teams", $id: { $oid: "65b8" } },
    { $ref: "teams", $id: "65b8" },
  ],
])("the typed value %j", (given, value) => {
  expect(JSON.parse(JSON.stringify(plainValues(given)))).toEqual(value);
});

test("keys get names that Herald accepts, and no value replaces another", () => {
  const renamed: string[][] = [];
  const fields = Object.entries({
    "a.b": 1,
    a_b: 2,
    $a_b: 3,
    _a_b: 4,
    "": 5,
    a$b: 6,
    x: { "y.z": [{ "": 7 }] },
    n: null,
  });
  const data = ownData(
    [...fields, ["x", 8] as const, ["a_b", 2] as const].map(([key, value]) => ({ field: key, key, value })),
    "metadata",
    (...names) => renamed.push(names),
  );
  expect(data).toEqual({ a_b: 2, _a_b: 4, x: { y_z: [{ _: 7 }] }, x_2: 8, a_b_2: 1, _a_b_2: 3, _: 5, a_b_3: 6 });
  expect(renamed).toEqual([
    ["x.y.z.", "metadata.x.y_z._"],
    ["x.y.z", "metadata.x.y_z"],
    ["x", "metadata.x_2"],
    ["a.b", "metadata.a_b_2"],
    ["$a_b", "metadata._a_b_2"],
    ["", "metadata._"],
    ["a$b", "metadata.a_b_3"],
  ]);
});
