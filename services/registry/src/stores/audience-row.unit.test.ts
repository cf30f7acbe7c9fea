import { newDeviceId } from "@herald/contracts";
import fc from "fast-check";
import { BSON } from "mongodb";
import { describe, expect, test } from "vitest";
import { readAudienceRow } from "./audience-row.ts";

const now = new Date("2030-01-01T00:00:00Z");
const row = { _id: newDeviceId(now), platform: "ios", token: "ab12", tokenUpdatedAt: now, updatedAt: now };
const keys = { p256dh: "B".repeat(87), auth: "a".repeat(22) };
const token = { key: "activity/order-1", token: "cd34", hash: "h".repeat(43), environment: "sandbox", at: now };
/** A document of a page as the database sends it: a part of a larger reply. */
const stored = (fields: object): Uint8Array => {
  const bytes = BSON.serialize(fields);
  return Buffer.concat([Buffer.from("before"), bytes, Buffer.from("after")]).subarray(6, 6 + bytes.length);
};

describe("a row of a page", () => {
  test.each([
    ["what every device has", row],
    ["what a phone may have", { ...row, environment: "sandbox", tokenKind: "fid", locale: "de", userId: "u 1" }],
    ["a browser's keys", { ...row, platform: "web", token: 'https://push.example/ü"\\', keys, vapidKeyId: "k" }],
    [
      "other fields first",
      { updatedAt: now, userId: "", token: "", tokenUpdatedAt: new Date(-1), _id: row._id, platform: "web" },
    ],
    ["its token of an activity", { ...row, tokens: [token] }],
    ["a token without an environment", { ...row, tokens: [{ ...token, environment: undefined }] }],
    ["a token of another form", { ...row, tokens: [{ ...token, more: 1 }] }],
    ["several tokens", { ...row, tokens: [token, token] }],
    ["no tokens", { ...row, tokens: [] }],
    ["other things than tokens", { ...row, tokens: ["cd34"] }],
    ["a field that no page names", { ...row, version: 1 }],
    ["a field of another type", { ...row, locale: null }],
    ["no token", { _id: row._id, platform: "ios", tokenUpdatedAt: now, updatedAt: now }],
  ])("has %s, as the driver reads it", (_, fields) => {
    expect(readAudienceRow(stored(fields))).toEqual(BSON.deserialize(BSON.serialize(fields)));
  });

  test("equals what the driver reads, for any document", () => {
    const text = fc.string({ unit: "grapheme" });
    const date = fc.date({ noInvalidDate: true });
    const fields = fc.record(
      {
        ...{ _id: text, platform: text, token: text, tokenUpdatedAt: date, updatedAt: date },
        ...{ environment: text, tokenKind: text, vapidKeyId: text, locale: text, userId: text },
        keys: fc.record({ p256dh: text, auth: text }),
        tokens: fc.array(fc.record({ key: text, token: text, hash: text, environment: text, at: date }), {
          maxLength: 2,
        }),
        other: fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.array(text)),
      },
      { requiredKeys: ["_id", "platform", "token", "tokenUpdatedAt", "updatedAt"] },
    );
    fc.assert(
      fc.property(fields, (device) => {
        expect(readAudienceRow(stored(device))).toEqual(BSON.deserialize(BSON.serialize(device)));
      }),
      { numRuns: 500 },
    );
  });

  test("that is truncated or corrupt is refused by the driver or is another row, and never loops", () => {
    const whole = BSON.serialize({ ...row, keys, locale: "de", tokens: [token] });
    const change = fc.record({ at: fc.nat(whole.length - 1), byte: fc.integer({ min: 0, max: 255 }) });
    let refused = 0;
    fc.assert(
      fc.property(fc.array(change, { maxLength: 4 }), fc.nat(whole.length), (changes, length) => {
        const mangled = whole.slice(0, length);
        for (const { at, byte } of changes) if (at < length) mangled[at] = byte;
        try {
          readAudienceRow(mangled);
        } catch (error) {
          if (!(error instanceof BSON.BSONError) && !(error instanceof RangeError)) throw error;
          refused++;
        }
      }),
      { numRuns: 2_000 },
    );
    expect(refused).toBeGreaterThan(100);
  });
});
