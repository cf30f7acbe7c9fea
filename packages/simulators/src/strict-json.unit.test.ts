import { expect, it } from "vitest";
import { parseStrictJson } from "./strict-json.ts";

it.each([
  '{"a":{"a":1},"b":[{"a":1},{"a":2}],"c":"{\\"a\\":1,\\"a\\":2}"}',
  '{"a":"a:a","b":"}"}',
  '["a","a"]',
  '"a"',
  "{}",
])("parses %s", (text) => expect(parseStrictJson(text)).toEqual(JSON.parse(text)));

it.each([
  ['{"a":1,"a":2}', "a"],
  ['{"b":{"x":1,"c":{},"x":2}}', "x"],
  ['[{"a":1},{"a":1,"\\u0061":2}]', "a"],
  ['{"a":[{"a":1}],"a":2}', "a"],
])("refuses %s", (text, name) => expect(() => parseStrictJson(text)).toThrow(`\`${name}\``));

it("refuses text that is no JSON", () => expect(() => parseStrictJson('{"a"')).toThrow());
