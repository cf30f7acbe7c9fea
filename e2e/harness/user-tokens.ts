import { createHmac, createSign, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** The parts of a token that an app's backend signs; tests replace them like an attacker. */
export type TokenParts = {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
};

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const unsigned = (alg: string, { header = {}, claims }: TokenParts): string =>
  `${part({ alg, typ: "JWT", ...header })}.${part(claims)}`;

export const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

/** The claims of a token that is valid for an hour. */
export const claimsOf = (projectId: string, userId: string, change: Record<string, unknown> = {}) => ({
  sub: userId,
  aud: projectId,
  iat: nowSeconds(),
  exp: nowSeconds() + 3_600,
  ...change,
});

export const hs256 = (secret: string | Buffer, token: TokenParts): string => {
  const text = unsigned("HS256", token);
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
};

export const es256 = (key: KeyObject, token: TokenParts): string => {
  const text = unsigned("ES256", token);
  return `${text}.${sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
};

export const eddsa = (key: KeyObject, token: TokenParts): string => {
  const text = unsigned("EdDSA", token);
  return `${text}.${sign(null, Buffer.from(text), key).toString("base64url")}`;
};

export const rs256 = (key: KeyObject, token: TokenParts): string => {
  const text = unsigned("RS256", token);
  return `${text}.${createSign("sha256").update(text).sign(key).toString("base64url")}`;
};

/** An unsigned token: header and claims, with an empty signature. */
export const noneToken = (token: TokenParts): string => `${unsigned("none", token)}.`;

export const pemOf = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }).toString();

export const newP256 = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
export const newEd25519 = () => generateKeyPairSync("ed25519");
export const newRsa = (modulusLength: number) => generateKeyPairSync("rsa", { modulusLength });
