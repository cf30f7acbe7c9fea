import { Labels } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fromTags, toTags } from "./tags.ts";

const labels = fc.dictionary(
  fc.stringMatching(/^[a-z0-9_]{1,32}$/).filter((name) => name !== "__proto__"),
  fc.string({ minLength: 1, maxLength: 64 }).filter((value) => !/[\p{Cc}\p{Cs}]/u.test(value)),
  { maxKeys: 8, noNullPrototype: true },
);

describe("tags", () => {
  test("become the kind and the labels again, whatever the values contain", () => {
    fc.assert(
      fc.property(
        fc.option(fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/), { nil: undefined }),
        labels,
        (kind, of) => {
          expect(Labels.parse(of)).toEqual(of);
          const fields = { ...(kind !== undefined && { kind }), ...(Object.keys(of).length > 0 && { labels: of }) };
          expect(fromTags(toTags(fields))).toEqual(fields);
        },
      ),
    );
  });

  test("are none without kind and labels", () => {
    expect(toTags({})).toBeUndefined();
    expect(toTags({ labels: {} })).toBeUndefined();
    expect(fromTags()).toEqual({});
  });
});

test("statistics and events know the push type", () => {
  const tags = toTags({ kind: "call", push_type: "voip" });
  expect(tags).toEqual(["kind/call", "push_type/voip"]);
  expect(fromTags(tags)).toEqual({ kind: "call", push_type: "voip" });
  expect(fromTags(["label/push_type/voip"])).toEqual({ labels: { push_type: "voip" } });
});
