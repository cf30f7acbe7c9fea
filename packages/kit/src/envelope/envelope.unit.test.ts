import { describe, expect, test } from "vitest";
import { type MasterKeys, type Owner, parseMasterKeys, parseOpenKeys, rewrap, seal, unseal } from "./envelope.ts";

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
  test("contains the secrets only encrypted", () => {
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

  test("is rewrapped when the master key changes", () => {
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
    [`k:${bytes(1)},k:${bytes(2)}`, "the key id k is used twice"],
  ])("%j: %s", (text, problem) => {
    expect(parseMasterKeys(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

describe("the keys of open tokens", () => {
  test("are read in order, also longer ones", () => {
    const parsed = parseOpenKeys(`a:${bytes(1)}, b:${bytes(2, 48)}`);
    expect("keys" in parsed && parsed.keys.map(({ id }) => id)).toEqual(["a", "b"]);
  });

  test.each([
    ["a", "each key must be"],
    ["a:!!", "each key must be"],
    [`a:${bytes(1, 31)}`, "at least 32 bytes"],
    [`a:${bytes(1)},a:${bytes(1)}`, "used twice"],
  ])("%j: %s", (text, problem) => {
    expect(parseOpenKeys(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});
