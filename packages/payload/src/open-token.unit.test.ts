import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { newDeviceId, newNotificationId, newProjectId } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createOpenTokens, openTokenLifetimeMs } from "./open-token.ts";

const now = new Date("2030-01-01T00:00:00Z");
const claim = {
  projectId: newProjectId(now),
  notificationId: newNotificationId(now),
  deviceId: newDeviceId(now),
  platform: "android" as const,
};
const key = { id: "k1", secret: randomBytes(32) };
const tokens = createOpenTokens([key]);
const token = tokens.sign(claim, now);

describe("an open token", () => {
  test.each(["ios", "android", "web"] as const)(
    "names the device and the platform it was signed for: %s",
    (platform) => {
      for (const asked of [false, true]) {
        const signed = tokens.sign({ ...claim, platform, asked }, now);
        expect(tokens.verify(claim, signed, now)).toEqual({ deviceId: claim.deviceId, platform, asked, issuedAt: now });
        expect(signed).toHaveLength(tokens.length);
      }
    },
  );

  test("is HMAC-SHA-256 under the project's derived key, as the standard library computes it", () => {
    const derived = Buffer.from(hkdfSync("sha256", key.secret, "", `herald open token ${claim.projectId}`, 32));
    const signed = token.slice(0, token.lastIndexOf("."));
    const mac = createHmac("sha256", derived)
      .update(`${signed}.${claim.projectId}.${claim.notificationId}`)
      .digest("base64url");
    expect(token).toBe(`${signed}.${mac}`);
  });

  test("has the length that payloads are weighed with", () => {
    expect(token).toHaveLength(tokens.length);
  });

  test("is valid for thirty days and not a second longer", () => {
    const end = now.getTime() + openTokenLifetimeMs;
    expect(tokens.verify(claim, token, new Date(end - 1))).toHaveProperty("deviceId");
    expect(tokens.verify(claim, token, new Date(end))).toEqual({ fault: "expired" });
  });

  test.each([
    ["another project", { ...claim, projectId: newProjectId(now) }, token, "forged"],
    ["another notification", { ...claim, notificationId: newNotificationId(now) }, token, "forged"],
    ["another device", claim, token.replace(claim.deviceId, newDeviceId(now)), "forged"],
    ["a later expiry", claim, token.replace(/\.(\d{10})\./, (_, at: string) => `.${Number(at) + 1}.`), "forged"],
    ["another platform", claim, token.replace(".a.", ".i."), "forged"],
    ["a receipt that was not asked for", claim, token.replace(".a.", ".A."), "forged"],
    ["no platform", claim, token.replace(".a.", "."), "malformed"],
    ["a platform that there is not", claim, token.replace(".a.", ".x."), "malformed"],
    ["a key that is not in the ring", claim, token.replace("v2.k1.", "v2.k2."), "unknown-key"],
    ["another version", claim, token.replace("v2.", "v3."), "malformed"],
    ["nothing", claim, "", "malformed"],
    ["a tail", claim, `${token}.`, "malformed"],
  ])("does not open for %s", (_, of, text, fault) => {
    expect(tokens.verify(of, text, now)).toEqual({ fault });
  });

  test("survives the rotation of the signing key", () => {
    const rotated = createOpenTokens([{ id: "k2", secret: randomBytes(32) }, key]);
    expect(rotated.verify(claim, token, now)).toEqual({
      deviceId: claim.deviceId,
      platform: "android",
      asked: false,
      issuedAt: now,
    });
    expect(rotated.sign(claim, now)).toMatch(/^v2\.k2\./);
  });

  test("refuses every other text", () => {
    const changed = fc.tuple(fc.nat(token.length - 1), fc.constantFrom(..."0aA._-")).map(([at, character]) => {
      return token.slice(0, at) + character + token.slice(at + 1);
    });
    fc.assert(
      fc.property(fc.oneof(fc.string(), changed), (text) => {
        fc.pre(text !== token);
        expect(tokens.verify(claim, text, now)).toHaveProperty("fault");
      }),
      { numRuns: 2000 },
    );
  });
});
