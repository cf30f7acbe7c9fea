import { readFileSync } from "node:fs";
import { batchedTypes, events } from "@herald/contracts";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { describeEvents } from "./describe-events.ts";

const document = describeEvents();

test("the document in docs/reference is this one; a change of an event is a diff (npm run docs)", async () => {
  const text = `${JSON.stringify(document, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../../../../docs/reference/asyncapi.json");
});

describe("against the schema of AsyncAPI 3.1", () => {
  const schema = JSON.parse(readFileSync(new URL(import.meta.resolve("@asyncapi/specs/schemas/3.1.0.json")), "utf8"));
  const ajv = new Ajv({ strict: false, allErrors: true, logger: false, meta: false, validateSchema: false });
  addFormats.default(ajv);
  const valid = ajv.compile(schema);

  test("it is valid", () => {
    valid(structuredClone(document));
    expect(valid.errors).toBeNull();
  });

  test("a broken one is not", () => {
    expect(valid({ ...document, asyncapi: "2.0.0" })).toBe(false);
    expect(valid({ ...document, channels: { one: { adress: "x" } } })).toBe(false);
  });

  test("every reference leads somewhere", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = ""]) => path);
    expect(references.length).toBeGreaterThan(Object.keys(events).length);
    for (const path of references) {
      const found = path
        .split("/")
        .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
      expect(found, path).toBeDefined();
    }
  });
});

describe.each(Object.values(events))("$name", ({ name, filter, schema, ceType }) => {
  const fixture = new URL(`../../../../packages/contracts/fixtures/${name}.json`, import.meta.url);
  const golden: { subject: string; data: { project_id: string } } = JSON.parse(readFileSync(fixture, "utf8"));

  test("is on the subject that it has on the bus", () => {
    expect(document.channels[name]?.address).toBe(filter.replace("*", "{project_id}"));
    expect(String(document.channels[name]?.address).replace("{project_id}", golden.data.project_id)).toBe(
      golden.subject,
    );
  });

  test("has a payload that its golden message fits, also with a field of a later version, and that nothing else does", () => {
    const ajv = new Ajv({ strict: false, logger: false });
    addFormats.default(ajv);
    const fits = ajv.compile(document.components.messages[name]?.payload ?? false);
    expect(fits({ ...golden.data, later: 1 })).toBe(true);
    expect(fits({ ...golden.data, project_id: 1 })).toBe(false);
    const { examples } = document.components.messages[name] as unknown as { examples: [{ payload: unknown }] };
    expect(schema.parse(examples[0].payload)).toEqual(examples[0].payload);
  });

  test("has a second message if it may share one, which its golden message fits", () => {
    const batch = document.components.messages[`${name}Batch`];
    expect(batch !== undefined).toBe(batchedTypes.has(ceType));
    expect(Object.keys(document.channels[name]?.messages ?? {})).toEqual(batch ? [name, `${name}Batch`] : [name]);
    if (batch === undefined) return;
    const ajv = new Ajv({ strict: false, logger: false });
    addFormats.default(ajv);
    const fits = ajv.compile(batch.payload ?? false);
    const event = {
      specversion: "1.0",
      id: "1",
      source: `/projects/${golden.data.project_id}`,
      type: ceType,
      time: "2030-01-01T00:00:00Z",
      subject: "x",
      data: golden.data,
    };
    expect(fits([event, { ...event, requestid: "2", later: 1 }])).toBe(true);
    expect(fits([event, { ...event, data: { ...golden.data, project_id: 1 } }])).toBe(false);
    expect(fits([{ ...event, type: "io.herald.other.v1" }])).toBe(false);
  });
});
