import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { hasCode } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { parsePublicKey } from "./identity-keys.ts";

const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();
const jwk = (key: KeyObject) => key.export({ format: "jwk" }) as Record<string, unknown>;
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pss = generateKeyPairSync("rsa-pss", { modulusLength: 2048 });

const problem = (given: string | Record<string, unknown>): string => {
  try {
    return `taken: ${parsePublicKey(given).algorithm}`;
  } catch (error) {
    if (hasCode(error, "validation-failed")) return error.messages.join();
    throw error;
  }
};

describe("a public key", () => {
  test.each([
    ["ES256", ec.publicKey],
    ["EdDSA", ed.publicKey],
    ["RS256", rsa.publicKey],
  ])("for %s is accepted as PEM and as JWK, and only its public members are stored", (algorithm, key) => {
    const fromPem = parsePublicKey(pem(key));
    expect(fromPem.algorithm).toBe(algorithm);
    const more = { ...jwk(key), alg: algorithm, use: "sig", kid: "theirs", x5u: "https://example.com" };
    expect(parsePublicKey(more)).toEqual(fromPem);
    expect(
      Object.keys(JSON.parse(fromPem.jwk)).every((name) => ["kty", "crv", "x", "y", "n", "e"].includes(name)),
    ).toBe(true);
  });

  test.each<[string, string | Record<string, unknown>, string]>([
    ["a private PEM", ec.privateKey.export({ type: "pkcs8", format: "pem" }).toString(), "BEGIN PUBLIC KEY"],
    ["two of them", pem(ec.publicKey) + pem(ed.publicKey), "BEGIN PUBLIC KEY"],
    ["nothing", "", "BEGIN PUBLIC KEY"],
    ["a PEM of nothing", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "does not parse"],
    ["a private JWK", jwk(ec.privateKey), "private member `d`"],
    ["a symmetric JWK", { kty: "oct", k: "c2VjcmV0" }, "private member `k`"],
    ["half a JWK", { kty: "EC", crv: "P-256", x: "AA" }, "does not parse"],
    ["an empty JWK", {}, "does not parse"],
    ["one for encryption", { ...jwk(ec.publicKey), use: "enc" }, "`use`"],
    ["one of another algorithm", { ...jwk(rsa.publicKey), alg: "PS256" }, "`alg`"],
    ["another curve", pem(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey), "P-256"],
    ["for agreement", pem(generateKeyPairSync("x25519").publicKey), "P-256"],
    ["RSA-PSS", pem(pss.publicKey), "P-256"],
    ["1024 bits", pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey), "1024 bits"],
    [
      "a small exponent",
      pem(generateKeyPairSync("rsa", { modulusLength: 2048, publicExponent: 3 }).publicKey),
      "65537",
    ],
  ])("is refused: %s", (_, given, words) => expect(problem(given)).toContain(words));
});
