import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import type { WebPushKeys } from "@herald/contracts";
import { hkdfSha256 } from "@herald/payload";
import { encodeAes128gcm } from "./aes128gcm.ts";

const pointBytes = 65;
/** The first byte of a point that is not compressed. */
const uncompressed = 4;
const authBytes = 16;
const saltBytes = 16;

/** The sender's side of the key agreement. */
export type SenderKeys = {
  readonly privateKey: KeyObject;
  /** The public key, which the body carries: an uncompressed point of P-256. */
  readonly point: Buffer;
};

/** `problem` says what is wrong with the subscription's keys. */
export type Encrypted = { readonly body: Buffer } | { readonly problem: string };

/** A new pair. One serves a batch: what tells two subscriptions' secrets apart are their own keys. */
export function newSenderKeys(): SenderKeys {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const point = [Buffer.of(uncompressed), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")];
  return { privateKey, point: Buffer.concat(point) };
}

/**
 * Encrypts a text for one subscription (RFC 8291). The key agreement, most of the cost, runs in libuv's threads. `salt` is
 * random, and given only where a known answer is tested.
 */
export async function encryptPush(
  text: string,
  keys: WebPushKeys | undefined,
  sender: SenderKeys,
  salt: Buffer = newSalt(),
): Promise<Encrypted> {
  if (keys === undefined) return { problem: "keys: the subscription has none" };
  const auth = Buffer.from(keys.auth, "base64url");
  if (auth.length !== authBytes) return { problem: `keys.auth: ${auth.length} bytes, must be ${authBytes}` };
  const point = Buffer.from(keys.p256dh, "base64url");
  const publicKey = importPoint(point);
  if (publicKey === undefined) return { problem: "keys.p256dh: not an uncompressed point of P-256" };
  const secret = await agree(sender.privateKey, publicKey);
  const info = `WebPush: info\0${point.toString("latin1")}${sender.point.toString("latin1")}`;
  const keyingMaterial = hkdfSha256(auth, secret)(info, 32);
  return { body: encodeAes128gcm(text, { keyingMaterial, salt, keyId: sender.point }) };
}

let salts = Buffer.alloc(0);
let used = 0;

/** Each is given out once. Many are made at a time, because a call for 16 bytes costs as much as one for 4,096. */
function newSalt(): Buffer {
  if (used === salts.length) {
    salts = randomBytes(256 * saltBytes);
    used = 0;
  }
  used += saltBytes;
  return salts.subarray(used - saltBytes, used);
}

/** What stands before the point in the DER of a P-256 public key (RFC 5480). */
const derPrefix = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex");

/**
 * Undefined for what is not a point of the curve. As PEM, because of everything else Node finds out by exceptions that it is not
 * a KeyObject, and they cost twice as much as the import.
 */
function importPoint(point: Buffer): KeyObject | undefined {
  if (point.length !== pointBytes || point[0] !== uncompressed) return undefined;
  const der = Buffer.concat([derPrefix, point]).toString("base64");
  try {
    return createPublicKey(`-----BEGIN PUBLIC KEY-----\n${der}\n-----END PUBLIC KEY-----`);
  } catch {
    return undefined;
  }
}

/** ECDH by KeyObjects: `createECDH().computeSecret` would check the sender's own pair again for every device. */
const agree = (privateKey: KeyObject, publicKey: KeyObject): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    diffieHellman({ privateKey, publicKey }, (error, secret) => (error === null ? resolve(secret) : reject(error)));
  });
