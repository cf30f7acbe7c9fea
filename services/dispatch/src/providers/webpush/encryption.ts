import {
  createCipheriv,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import type { WebPushKeys } from "@herald/contracts";
import { hkdfSha256 } from "@herald/payload";

/** Push services accept bodies of 4,096 bytes (RFC 8030, 7.2), so a push is one record. */
const recordBytes = 4096;
/** The delimiter of the last record (RFC 8188, 2). Herald adds no padding after it. */
const lastRecord = "\u0002";

export type Aes128gcmKeys = {
  readonly keyingMaterial: Buffer;
  /** 16 bytes, different for every text with the same keying material: the key and nonce of AES-GCM are derived from them. */
  readonly salt: Buffer;
  /** Identifies the keying material to the reader; at most 255 bytes. */
  readonly keyId: Buffer;
};

/** Encodes a text of at most 4,079 bytes, which fit one record, as an `aes128gcm` body (RFC 8188). */
export function encodeAes128gcm(text: string, { keyingMaterial, salt, keyId }: Aes128gcmKeys): Buffer {
  const expand = hkdfSha256(salt, keyingMaterial);
  // A KeyObject, because for a Buffer, Node throws and catches an internal exception that costs more than the encryption.
  const key = createSecretKey(expand("Content-Encoding: aes128gcm\0", 16));
  const cipher = createCipheriv("aes-128-gcm", key, expand("Content-Encoding: nonce\0", 12));
  const sizes = Buffer.allocUnsafe(5);
  sizes.writeUInt32BE(recordBytes, 0);
  sizes.writeUInt8(keyId.length, 4);
  const record = cipher.update(text + lastRecord, "utf8");
  return Buffer.concat([salt, sizes, keyId, record, cipher.final(), cipher.getAuthTag()]);
}

const pointBytes = 65;
/** The first byte of an uncompressed point. */
const uncompressed = 4;
const authBytes = 16;
const saltBytes = 16;

/** The sender's side of the key agreement. */
export type SenderKeys = {
  readonly privateKey: KeyObject;
  /** The public key, which the body contains: an uncompressed point of P-256. */
  readonly point: Buffer;
};

/** `problem`: why the subscription's keys are invalid. */
export type Encrypted = { readonly body: Buffer } | { readonly problem: string };

/** Creates a key pair for a batch. The secrets of two subscriptions still differ, because their own keys do. */
export function newSenderKeys(): SenderKeys {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const point = [Buffer.of(uncompressed), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")];
  return { privateKey, point: Buffer.concat(point) };
}

/**
 * Encrypts a text for one subscription (RFC 8291). The key agreement, most of the cost, runs in libuv's threads. `salt` is
 * random; only known-answer tests pass it.
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

/** Returns each salt once. Creates many at a time, because `randomBytes` costs as much for 16 bytes as for 4,096. */
function newSalt(): Buffer {
  if (used === salts.length) {
    salts = randomBytes(256 * saltBytes);
    used = 0;
  }
  used += saltBytes;
  return salts.subarray(used - saltBytes, used);
}

/** The bytes before the point in the DER form of a P-256 public key (RFC 5480). */
const derPrefix = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex");

/**
 * Undefined when the bytes are not a point of the curve. Imports PEM, because for any other form Node throws and catches internal
 * exceptions, which cost twice as much as the import.
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

/** ECDH with KeyObjects: `createECDH().computeSecret` would check the sender's own pair again for every device. */
const agree = (privateKey: KeyObject, publicKey: KeyObject): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    diffieHellman({ privateKey, publicKey }, (error, secret) => (error === null ? resolve(secret) : reject(error)));
  });
