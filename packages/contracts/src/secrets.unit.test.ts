import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newDeviceId, newProjectId } from "./ids.ts";
import { secretHash } from "./records.ts";
import { isProjectToken, newDeviceCredential, newProjectToken, parseDeviceCredential } from "./secrets.ts";

const now = new Date();
const projectId = newProjectId(now);
const deviceId = newDeviceId(now);

describe("a project token", () => {
  test("is recognised, and no two are alike", () => {
    const tokens = Array.from({ length: 100 }, newProjectToken);
    expect(tokens.every(isProjectToken)).toBe(true);
    expect(new Set(tokens).size).toBe(100);
  });

  test("with one character changed, cut off or added is not one", () => {
    const token = newProjectToken();
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom(..."abcXYZ019-_=. "), (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        expect(isProjectToken(changed)).toBe(changed === token);
        expect(isProjectToken(token.slice(0, at))).toBe(false);
        expect(isProjectToken(token + character)).toBe(false);
      }),
    );
  });
});

describe("a device credential", () => {
  test("says whose it is", () => {
    const credential = newDeviceCredential(projectId, deviceId);
    expect(parseDeviceCredential(credential)).toEqual({ projectId, deviceId, hash: secretHash(credential) });
  });

  test.each(["", "hdc_", "hdc_AAAA", newProjectToken(), newDeviceCredential(projectId, deviceId).slice(0, -1)])(
    "%j is none",
    (text) => {
      expect(parseDeviceCredential(text)).toBeUndefined();
    },
  );
});
