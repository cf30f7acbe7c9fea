import { generateKeyPairSync } from "node:crypto";
import { generate } from "selfsigned";
import { describe, expect, it } from "vitest";
import { problemsOf } from "../../../test/settings-fixture.ts";
import { apnsPublicView, checkApnsSettings } from "./settings.ts";

const rules = { customEndpoints: false, now: new Date("2026-03-01T12:00:00Z") };
const pem = (key: import("node:crypto").KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();
const p8 = pem(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
const good = {
  key_id: "ABCDE12345",
  team_id: "TEAM123456",
  private_key: p8,
  bundle_id: "com.example.app",
  environment: "production",
};

const certificate = (from: string, to: string) =>
  generate([{ name: "commonName", value: "Apple Push Services: com.example.app" }], {
    keyType: "ec",
    curve: "P-256",
    notBeforeDate: new Date(from),
    notAfterDate: new Date(to),
  }).then(({ cert, private: key }) => ({
    certificate: cert,
    private_key: key,
    bundle_id: "com.example.app",
    environment: "sandbox",
  }));

const problems = (input: unknown, over: Partial<typeof rules> = {}) =>
  problemsOf(() => checkApnsSettings(input, { ...rules, ...over }));

describe("token authentication", () => {
  it("takes a .p8 key", () => {
    expect(checkApnsSettings(good, rules)).toEqual(good);
  });
  it.each([
    ["text", "hello", /private_key: is not a private key in PEM form/],
    [
      "a public key",
      generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ type: "spki", format: "pem" }),
      /private_key: is not/,
    ],
    ["a cut key", p8.slice(0, 80), /private_key: is not/],
    [
      "a key of another curve",
      pem(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey),
      /private_key: must be a P-256 key .* ec secp384r1/,
    ],
    [
      "an RSA key",
      pem(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey),
      /private_key: must be a P-256 key .* rsa/,
    ],
    ["an Ed25519 key", pem(generateKeyPairSync("ed25519").privateKey), /private_key: must be a P-256 key .* ed25519/],
  ])("says what is wrong with %s", (_, privateKey, message) => {
    expect(problems({ ...good, private_key: privateKey })).toEqual([expect.stringMatching(message)]);
  });
  it("names every field that is wrong at once", () => {
    expect(problems({ ...good, key_id: "short", bundle_id: "com/example", environment: "test", surplus: 1 })).toEqual([
      expect.stringMatching(/^key_id: /),
      expect.stringMatching(/^bundle_id: /),
      expect.stringMatching(/^environment: /),
      "surplus: is not known",
    ]);
    expect(problems(null)).toEqual([expect.stringMatching(/^settings: /)]);
  });
  it("takes up to 20 further apps of the team, and shows them", () => {
    const apps = (count: number) => Array.from({ length: count }, (_, at) => `com.example.app${at}`);
    expect(apnsPublicView(checkApnsSettings({ ...good, bundle_ids: apps(20) }, rules))).toMatchObject({
      bundle_ids: apps(20),
    });
    expect(problems({ ...good, bundle_ids: apps(21) })).toEqual(["bundle_ids: at most 20 are accepted"]);
    expect(problems({ ...good, bundle_ids: ["com/example"] })).toEqual([expect.stringMatching(/^bundle_ids\.0: /)]);
  });
  it("shows no key", () => {
    const checked = checkApnsSettings(good, rules);
    const view = apnsPublicView(checked);
    expect(view).toEqual({
      key_id: "ABCDE12345",
      team_id: "TEAM123456",
      bundle_id: "com.example.app",
      environment: "production",
    });
  });
});

describe("certificate authentication", () => {
  it("takes a certificate with its key and shows whose and until when", async () => {
    const settings = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    const checked = checkApnsSettings(settings, rules);
    expect(checked).toEqual(settings);
    const view = apnsPublicView(checked);
    expect(view).toMatchObject({
      bundle_id: "com.example.app",
      environment: "sandbox",
      certificate_subject: "CN=Apple Push Services: com.example.app",
      expires_at: "2027-01-01T00:00:00.000Z",
    });
    expect(JSON.stringify(view)).not.toContain("PRIVATE");
  });
  it("is for one app", async () => {
    const settings = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    expect(problems({ ...settings, bundle_ids: ["com.example.driver"] })).toEqual([
      "bundle_ids: needs a key (key_id, team_id); a certificate is for one app",
    ]);
  });
  it("refuses one that is out of date, or not of its key", async () => {
    const old = await certificate("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
    expect(problems(old)).toEqual(["certificate: expired on 2025-01-01T00:00:00.000Z; put one that is valid"]);
    const early = await certificate("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
    expect(problems(early)).toEqual(["certificate: is valid only from 2027-01-01T00:00:00.000Z"]);
    const current = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    expect(problems({ ...current, private_key: old.private_key })).toEqual([
      "certificate: does not belong to private_key",
    ]);
    expect(problems({ ...current, certificate: "x", private_key: "y" })).toEqual([
      "certificate: is not a certificate in PEM form",
      "private_key: is not an unencrypted private key in PEM form",
    ]);
  });
});

describe("endpoint and ca", () => {
  const allowed = { customEndpoints: true };
  it("are refused unless the operator allows them", async () => {
    const { certificate: ca } = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    const elsewhere = { ...good, endpoint: "https://127.0.0.1:9443", ca };
    expect(problems(elsewhere)).toEqual([
      expect.stringMatching(/^endpoint: is not allowed .*HERALD_DISPATCH_CUSTOM_ENDPOINTS/),
      expect.stringMatching(/^ca: is not allowed/),
    ]);
    expect(checkApnsSettings(elsewhere, { ...rules, ...allowed })).toEqual(elsewhere);
  });
  it.each(["http://127.0.0.1", "https://host/path", "https://user@host", "https://host?a", "nonsense"])(
    "refuses %s",
    (endpoint) => {
      expect(problems({ ...good, endpoint }, allowed)).toEqual([
        expect.stringMatching(/^endpoint: must be an https URL/),
      ]);
    },
  );
  it("refuses an authority that does not parse", () => {
    expect(problems({ ...good, ca: "x" }, allowed)).toEqual([expect.stringMatching(/^ca: must be/)]);
  });
});
