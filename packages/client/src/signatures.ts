import { HeraldError } from "./error.ts";
import type { HeraldEvent } from "./events.ts";

/** `CryptoKey`, which the types of the DOM or of Node declare. */
type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const hmacKey = (bytes: Uint8Array<ArrayBuffer>, use: "sign" | "verify"): Promise<SigningKey> =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);

export type UserTokenOptions = {
  /** The project's id, `prj_…`. */
  readonly project: string;
  /** The identity secret, `his_…`, or the private key whose public half the project has (ES256, EdDSA or RS256). */
  readonly secret: string | SigningKey;
  /** The id of the identity key, so that Herald does not need to try each key. */
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

/** Signs a JWT that your app sends to Herald, to prove that this user is logged in. */
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

/** `Headers`, or Node's `request.headers`. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Limits replays, whose signatures are valid. */
const toleranceSeconds = 300;

const refuse = (why: string): HeraldError =>
  new HeraldError("signature-invalid", `the webhook's signature is invalid: ${why}`);

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> => {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
};

/**
 * Verifies a webhook's signature and timestamp (Standard Webhooks), and returns the event. `body` must be the bytes as received: parsing
 * and serialising changes them. Throws `signature-invalid`.
 */
export const verifyWebhook = async (
  headers: ReceivedHeaders,
  body: string | Uint8Array,
  secret: string,
): Promise<HeraldEvent> => {
  const key = bytesOf(secret.replace(/^whsec_/, ""));
  if (key.length === 0) throw new TypeError("secret: must be the webhook's secret, whsec_…");
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== "string") throw refuse(`it has no ${name}`);
    return value;
  };
  const timestamp = header("webhook-timestamp");
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) < toleranceSeconds))
    throw refuse("webhook-timestamp is more than five minutes off; check this machine's clock");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${header("webhook-id")}.${timestamp}.${text}`);
  const verifier = await hmacKey(key, "verify");
  // During the rotation of a secret there are two signatures.
  for (const signature of header("webhook-signature").split(" "))
    if (
      signature.startsWith("v1,") &&
      (await crypto.subtle.verify("HMAC", verifier, bytesOf(signature.slice(3)), signed))
    )
      return JSON.parse(text);
  throw refuse("no signature is of this secret");
};
