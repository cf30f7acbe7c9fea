import { expect, test } from "vitest";
import { contentOfTemplate, editedOf, moreFieldsOf, newTemplate, samplesOf } from "./content.ts";

const content = {
  title: "Order {{ order }}",
  link_to: "/orders/{{ order }}",
  sound: "default",
  localizations: { de: { title: "Bestellung {{ order }}" } },
  variables: {
    order: { type: "string" },
    count: { type: "number", fallback: 1 },
    fast: { type: "boolean", fallback: false },
  },
};

test("a stored template comes back from the form as it was", () => {
  expect(contentOfTemplate(editedOf({ content } as never))).toEqual(content);
  expect(contentOfTemplate(newTemplate)).toEqual({});
});

test("the preview has a value for each variable: the sample, the fallback or an example", () => {
  const edited = editedOf({ content } as never);
  expect(samplesOf(edited)).toEqual({ order: "order", count: 1, fast: false });
  const variables = edited.variables.map((one) => (one.name === "count" ? { ...one, sample: "7" } : one));
  expect(samplesOf({ ...edited, variables })).toMatchObject({ count: 7 });
});

test("a value of another type is left to the API", () => {
  const variables = [{ name: "count", type: "number", fallback: "many", sample: "" }];
  expect(contentOfTemplate({ ...newTemplate, variables })).toEqual({
    variables: { count: { type: "number", fallback: "many" } },
  });
});

test("fields that are not a JSON object are no fields", () => {
  expect(moreFieldsOf({ ...newTemplate, more: "[1]" })).toBeUndefined();
});
