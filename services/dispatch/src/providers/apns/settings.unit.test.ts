import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
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

const pemOf = (text: string) => new X509Certificate(text).toString();
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
    expect(checked).toMatchObject({ ...settings, certificate: pemOf(settings.certificate) });
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
      "private_key: is not a private key in PEM form",
    ]);
  });
  describe("finds the certificate of the key in a file with others", () => {
    const year = { notBeforeDate: new Date("2026-01-01T00:00:00Z"), notAfterDate: new Date("2027-01-01T00:00:00Z") };
    const ca = {
      ...year,
      keyType: "ec" as const,
      extensions: [{ name: "basicConstraints" as const, cA: true, critical: true }],
    };
    const issued = async () => {
      const root = await generate([{ name: "commonName", value: "Root" }], ca);
      const issuer = await generate([{ name: "commonName", value: "Issuer" }], {
        ...ca,
        ca: { key: root.private, cert: root.cert },
      });
      const leaf = await generate([{ name: "commonName", value: "Apple Push Services: com.example.app" }], {
        ...year,
        keyType: "ec",
        ca: { key: issuer.private, cert: issuer.cert },
      });
      return { root: root.cert, issuer: issuer.cert, leaf: leaf.cert, key: leaf.private };
    };
    const app = { bundle_id: "com.example.app", environment: "production" };

    it("in any order, with text and the key between: TLS gets the leaf, then its issuers", async () => {
      const { root, issuer, leaf, key } = await issued();
      const crlf = (text: string) => text.replaceAll("\n", "\r\n");
      const files: [string[], string[]][] = [
        [
          [issuer, leaf],
          [leaf, issuer],
        ],
        [
          [root, issuer, leaf],
          [leaf, issuer, root],
        ],
        [
          ["Bag Attributes\n    localKeyID: 01\nsubject=/CN=Issuer\n", issuer, key, leaf],
          [leaf, issuer],
        ],
        [
          [crlf(issuer), crlf(leaf)],
          [leaf, issuer],
        ],
      ];
      for (const [file, chain] of files) {
        const checked = checkApnsSettings({ ...app, certificate: file.join("\n"), private_key: key }, rules);
        expect(checked).toMatchObject({ certificate: chain.map(pemOf).join("") });
        expect(apnsPublicView(checked)).toMatchObject({
          certificate_subject: expect.stringContaining("Apple Push Services"),
        });
      }
    });
    it("and the key in the same file", async () => {
      const { issuer, leaf, key } = await issued();
      const file = [issuer, leaf, key].join("\n");
      expect(checkApnsSettings({ ...app, certificate: file, private_key: file }, rules)).toMatchObject({
        certificate: [leaf, issuer].map(pemOf).join(""),
      });
    });
    it("and the newest, if it was renewed for the same key", async () => {
      const old = await certificate("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
      const { publicKey } = new X509Certificate(old.certificate);
      const renewed = await generate([{ name: "commonName", value: "Apple Push Services: com.example.app" }], {
        ...year,
        keyType: "ec",
        keyPair: {
          privateKey: old.private_key,
          publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
        },
      });
      const both = { ...old, certificate: `${old.certificate}\n${renewed.cert}` };
      expect(checkApnsSettings(both, rules)).toMatchObject({ certificate: pemOf(renewed.cert) });
    });
    it("and says if there is none", async () => {
      const { root, issuer } = await issued();
      const other = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
      expect(problems({ ...other, certificate: `${root}\n${issuer}` })).toEqual([
        "certificate: none of its 2 certificates belongs to private_key",
      ]);
    });
  });
  it("refuses one of another app, or for development in production", async () => {
    const year = { notBeforeDate: new Date("2026-01-01T00:00:00Z"), notAfterDate: new Date("2027-01-01T00:00:00Z") };
    const of = async (commonName: string, uid: string) => {
      const made = await generate(
        [
          { name: "commonName", value: commonName },
          { name: "0.9.2342.19200300.100.1.1", value: uid },
        ],
        { ...year, keyType: "ec" },
      );
      return { certificate: made.cert, private_key: made.private };
    };
    const app = { bundle_id: "com.example.app", environment: "production" };
    expect(problems({ ...app, ...(await of("Apple Push Services: com.example.app", "com.example.app")) })).toEqual([]);
    expect(problems({ ...app, ...(await of("VoIP Services: com.example.app", "com.example.app.voip")) })).toEqual([]);
    expect(problems({ ...app, ...(await of("Apple Push Services: com.example.other", "com.example.other")) })).toEqual([
      "bundle_id: is not the app of the certificate, which is for com.example.other",
    ]);
    const development = await of("Apple Development IOS Push Services: com.example.app", "com.example.app");
    expect(problems({ ...app, ...development })).toEqual([
      "environment: must be `sandbox`: it is a development certificate",
    ]);
    expect(problems({ ...app, ...development, environment: "sandbox" })).toEqual([]);
  });
  it("says that a key is encrypted", async () => {
    const settings = await certificate("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    const encrypted = createPrivateKey(settings.private_key)
      .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" })
      .toString();
    const words = [expect.stringMatching(/^private_key: is encrypted: .*openssl pkey/)];
    expect(problems({ ...settings, private_key: encrypted })).toEqual(words);
    expect(problems({ ...good, private_key: encrypted })).toEqual(words);
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
