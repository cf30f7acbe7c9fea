import { createCipheriv, createSecretKey } from "node:crypto";
import { hkdfSha256 } from "@herald/payload";

/** Push services take bodies of 4,096 bytes (RFC 8030, 7.2), so a push is one record. */
const recordBytes = 4096;
/** Begins the padding of the last record (RFC 8188, 2). There is no padding behind it. */
const lastRecord = "\u0002";

export type Aes128gcmKeys = {
  readonly keyingMaterial: Buffer;
  /** 16 bytes, different for every text under the same keying material: both keys of AES-GCM are derived from them. */
  readonly salt: Buffer;
  /** Tells the reader which keying material it is; at most 255 bytes. */
  readonly keyId: Buffer;
};

/** A text of at most 4,079 bytes, which fit one record, as an `aes128gcm` body (RFC 8188). */
export function encodeAes128gcm(text: string, { keyingMaterial, salt, keyId }: Aes128gcmKeys): Buffer {
  const expand = hkdfSha256(salt, keyingMaterial);
  // A KeyObject, because Node finds out what a Buffer is by an exception that costs more than the encryption.
  const key = createSecretKey(expand("Content-Encoding: aes128gcm\0", 16));
  const cipher = createCipheriv("aes-128-gcm", key, expand("Content-Encoding: nonce\0", 12));
  const sizes = Buffer.allocUnsafe(5);
  sizes.writeUInt32BE(recordBytes, 0);
  sizes.writeUInt8(keyId.length, 4);
  const record = cipher.update(text + lastRecord, "utf8");
  return Buffer.concat([salt, sizes, keyId, record, cipher.final(), cipher.getAuthTag()]);
}
