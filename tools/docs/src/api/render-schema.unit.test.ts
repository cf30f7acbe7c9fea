import { expect, test } from "vitest";
import { renderSchema, typeOf } from "./render-schema.ts";

test.each([
  [{ type: "string", format: "uri" }, "string (uri)"],
  [{ type: ["string", "null"] }, "string or null"],
  [{ type: "array", items: { $ref: "#/components/schemas/Device" } }, 'list of <a href="#schema-Device">Device</a>'],
  [{ enum: ["a", "<b>"] }, "<code>a</code>, <code>&lt;b&gt;</code>"],
  [{ anyOf: [{ type: "string" }, { const: 1 }] }, "string or <code>1</code>"],
  [{}, "anything"],
])("%j reads %s", (schema, words) => {
  expect(typeOf(schema)).toBe(words);
});

test("fields are listed with their paths, limits and whether they are required, and nothing is markup by accident", () => {
  const html = renderSchema({
    properties: {
      "<name>": { type: "string", minLength: 1, maxLength: 9, description: "Say `this` & <that>" },
      rows: { type: "array", items: { properties: { id: { type: "string" } }, required: ["id"] } },
    },
    required: ["<name>"],
  });
  expect(html).toContain("<code>&lt;name&gt;</code>");
  expect(html).toContain("Say <code>this</code> &amp; &lt;that&gt;");
  expect(html).toContain("<strong>required</strong>");
  expect(html).toContain("1 to 9");
  expect(html).toContain("<code>rows[].id</code>");
});
