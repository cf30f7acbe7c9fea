import { hash } from "node:crypto";

const blockBytes = 64;
const macBytes = 32;
/** The longest message so far is 145 bytes: the two public keys of a Web Push. */
const maxMessageBytes = 512;

const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");

/**
 * HMAC-SHA-256 (RFC 2104) under a key of at most 64 bytes, of messages of at most 512 bytes. A message is a string with one
 * character for each byte (latin1). Uses the one-shot hash because every push needs at least one HMAC: `createHmac` costs
 * eleven times as much with a raw key, and twice as much with a KeyObject. The inner digest is a string because a Buffer would
 * double the cost.
 */
export const hmacSha256 = (key: Uint8Array): ((message: string, encoding: "binary" | "base64url") => string) => {
  if (key.length > blockBytes) throw new RangeError(`key: ${key.length} bytes, at most ${blockBytes}`);
  const inner = Buffer.allocUnsafe(blockBytes + maxMessageBytes);
  const outer = Buffer.allocUnsafe(blockBytes + macBytes);
  for (let index = 0; index < blockBytes; index++) {
    const byte = key[index] ?? 0;
    inner[index] = byte ^ 0x36;
    outer[index] = byte ^ 0x5c;
  }
  return (message, encoding) => {
    if (message.length > maxMessageBytes)
      throw new RangeError(`message: ${message.length} bytes, at most ${maxMessageBytes}`);
    const end = blockBytes + inner.write(message, blockBytes, "latin1");
    outer.write(hash("sha256", inner.subarray(0, end), "binary"), blockBytes, "latin1");
    return hash("sha256", outer, encoding);
  };
};

/**
 * HKDF-SHA-256 (RFC 5869): extracts from a secret, and returns the function that expands it to keys of at most 32 bytes. `salt` of at most
 * 64 bytes, `info` one character for each byte. `hkdfSync` would extract again for every key.
 */
export const hkdfSha256 = (salt: Uint8Array, secret: Buffer): ((info: string, length: number) => Buffer) => {
  const expand = hmacSha256(bytesOf(hmacSha256(salt)(secret.toString("latin1"), "binary")));
  return (info, length) => {
    if (length > macBytes) throw new RangeError(`length: ${length} bytes, at most ${macBytes}`);
    return bytesOf(expand(`${info}\u0001`, "binary")).subarray(0, length);
  };
};
