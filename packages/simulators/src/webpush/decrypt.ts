import { createDecipheriv, hkdfSync } from "node:crypto";
import type { Subscriber } from "./subscriptions.ts";

const saltBytes = 16;
/** salt, record size (4), length of the key id (1) — RFC 8188, 2.1 */
const headerBytes = saltBytes + 5;
/** An uncompressed P-256 point. */
const pointBytes = 65;
const tagBytes = 16;
/** The smallest record size that RFC 8188, 2.1 allows. */
const minRecord = tagBytes + 2;
/** RFC 8188, 2: the delimiter of the last record. */
const lastRecord = 2;

const derive = (secret: Buffer, salt: Buffer, info: Buffer, length: number) =>
  Buffer.from(hkdfSync("sha256", secret, salt, info, length));

/**
 * Decrypts an `aes128gcm` body (RFC 8291: one record of RFC 8188) to text, as the subscribed browser does.
 * @throws Error that names the invalid part
 */
export function decryptPush(body: Buffer, { ecdh, auth }: Pick<Subscriber, "ecdh" | "auth">): string {
  if (body.length < headerBytes) throw new Error("body: shorter than the header of aes128gcm");
  const salt = body.subarray(0, saltBytes);
  const recordSize = body.readUInt32BE(saltBytes);
  const idLength = body.readUInt8(saltBytes + 4);
  if (recordSize < minRecord) throw new Error(`body: the record size is less than ${minRecord}`);
  if (idLength !== pointBytes) throw new Error("body: the key id is not an uncompressed P-256 key");
  const senderKey = body.subarray(headerBytes, headerBytes + pointBytes);
  const record = body.subarray(headerBytes + pointBytes);
  if (record.length < minRecord - 1) throw new Error("body: no record after the header");
  if (record.length > recordSize) throw new Error("body: more than one record");

  let shared: Buffer;
  try {
    shared = ecdh.computeSecret(senderKey);
  } catch {
    throw new Error("body: the key id is not a point of P-256");
  }
  const keyInfo = Buffer.concat([Buffer.from("WebPush: info\0"), ecdh.getPublicKey(), senderKey]);
  const secret = derive(shared, auth, keyInfo, 32);
  const key = derive(secret, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = derive(secret, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
  const decipher = createDecipheriv("aes-128-gcm", key, nonce);
  decipher.setAuthTag(record.subarray(-tagBytes));
  let padded: Buffer;
  try {
    padded = Buffer.concat([decipher.update(record.subarray(0, -tagBytes)), decipher.final()]);
  } catch {
    throw new Error("body: does not decrypt with the keys of this subscription");
  }
  let end = padded.length - 1;
  while (end > 0 && padded[end] === 0) end -= 1;
  if (padded[end] !== lastRecord)
    throw new Error("body: the padding does not begin with the delimiter of a last record");
  return padded.subarray(0, end).toString();
}
