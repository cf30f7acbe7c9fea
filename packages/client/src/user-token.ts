import { hmacKey, type SigningKey } from "./hmac.ts";

export type UserTokenOptions = {
  /** The project's id, `prj_…`. */
  readonly project: string;
  /** The identity secret, `his_…`, or the private key whose public half the project has (ES256, EdDSA or RS256). */
  readonly secret: string | SigningKey;
  /** The id of the identity key, so that Herald need not try each. */
  readonly keyId?: string | undefined;
  /** Lifetime, at most 24 hours. Default: an hour. */
  readonly expiresInSeconds?: number | undefined;
};

const algorithms: Readonly<Record<string, string>> = {
  HMAC: "HS256",
  ECDSA: "ES256",
  Ed25519: "EdDSA",
  "RSASSA-PKCS1-v1_5": "RS256",
};

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const utf8 = new TextEncoder();

/** Signs a JWT that proves to Herald that this user is logged in to your app. The app sends it. */
export const createUserToken = async (
  userId: string,
  { project, secret, keyId, expiresInSeconds = 3_600 }: UserTokenOptions,
): Promise<string> => {
  const key = typeof secret === "string" ? await hmacKey(utf8.encode(secret), "sign") : secret;
  const alg = algorithms[key.algorithm.name];
  if (alg === undefined) throw new TypeError(`secret: a ${key.algorithm.name} key signs no user token`);
  const iat = Math.floor(Date.now() / 1_000);
  const header = { alg, typ: "JWT", kid: keyId };
  const claims = { sub: userId, aud: project, iat, exp: iat + expiresInSeconds };
  const text = [header, claims].map((part) => base64url(utf8.encode(JSON.stringify(part)))).join(".");
  const how = { name: key.algorithm.name, hash: "SHA-256" };
  return `${text}.${base64url(new Uint8Array(await crypto.subtle.sign(how, key, utf8.encode(text))))}`;
};
