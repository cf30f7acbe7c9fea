import { describe, expect, test } from "vitest";
import { type Owner, rewrap, seal, unseal } from "./envelope.ts";
import { type MasterKeys, parseMasterKeys } from "./master-keys.ts";

const bytes = (fill: number, length = 32) => Buffer.alloc(length, fill).toString("base64");
const keysOf = (text: string): MasterKeys => {
  const parsed = parseMasterKeys(text);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.keys;
};
const old = keysOf(`one:${bytes(1)}`);
const rotating = keysOf(`two:${bytes(2)},one:${bytes(1)}`);
const rotated = keysOf(`two:${bytes(2)}`);
const owner = ["prj_1", "apns"] as const;
const secrets = { settings: '{"private_key":"PEM"}', other: "" };

describe("an envelope", () => {
  test("opens to what was put in, and shows none of it", () => {
    const envelope = seal(old, owner, secrets);
    expect(unseal(old, owner, envelope)).toEqual(secrets);
    expect(JSON.stringify(envelope)).not.toContain("PEM");
    expect(seal(old, owner, secrets).fields).not.toEqual(envelope.fields);
  });

  test.each<[string, Owner]>([
    ["another project's", ["prj_2", "apns"]],
    ["another provider's", ["prj_1", "fcm"]],
  ])("does not open as %s", (_, other) => {
    const envelope = seal(old, owner, secrets);
    expect(() => unseal(old, other, envelope)).toThrow();
  });

  test("does not open with a field in another's place, or with a changed bit", () => {
    const envelope = seal(old, owner, secrets);
    const { settings = "", other = "" } = envelope.fields;
    expect(() => unseal(old, owner, { ...envelope, fields: { settings: other, other: settings } })).toThrow();
    const changed = Buffer.from(settings, "base64");
    changed[20] = (changed[20] ?? 0) ^ 1;
    expect(() => unseal(old, owner, { ...envelope, fields: { settings: changed.toString("base64") } })).toThrow();
  });

  test("follows a rotation of the master key without being sealed again", () => {
    const envelope = seal(old, owner, secrets);
    expect(unseal(rotating, owner, envelope)).toEqual(secrets);
    const moved = rewrap(rotating, owner, envelope);
    expect(moved?.keyId).toBe("two");
    expect(moved?.fields).toBe(envelope.fields);
    expect(moved && unseal(rotated, owner, moved)).toEqual(secrets);
    expect(moved && rewrap(rotating, owner, moved)).toBeUndefined();
    expect(() => unseal(rotated, owner, envelope)).toThrow("the master key one is not configured");
  });
});

describe("master keys", () => {
  test.each([
    ["", "each key must be"],
    ["abc", "each key must be"],
    [`k:${bytes(1, 31)}`, "the key k must be 32 bytes"],
    [`k:${bytes(1)},k:${bytes(2)}`, "the key id k stands twice"],
  ])("%j: %s", (text, problem) => {
    expect(parseMasterKeys(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});
