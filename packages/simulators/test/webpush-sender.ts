import { createCipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";

/** A sender written only from RFC 8291. It shares no code with the services, so neither repeats the other's mistakes. */

const derive = (secret: Buffer, salt: Buffer, info: Buffer, length: number) =>
  Buffer.from(hkdfSync("sha256", secret, salt, info, length));

/** Encrypts the body for a subscription, with `padding` zeros after the text. */
export function encrypt(text: string, keys: { readonly p256dh: string; readonly auth: string }, padding = 0): Buffer {
  const [theirs, auth, salt] = [
    Buffer.from(keys.p256dh, "base64url"),
    Buffer.from(keys.auth, "base64url"),
    randomBytes(16),
  ];
  const ecdh = createECDH("prime256v1");
  const ours = ecdh.generateKeys();
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), theirs, ours]);
  const secret = derive(ecdh.computeSecret(theirs), auth, info, 32);
  const key = derive(secret, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = derive(secret, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
  const cipher = createCipheriv("aes-128-gcm", key, nonce);
  const padded = Buffer.concat([Buffer.from(text), Buffer.of(2), Buffer.alloc(padding)]);
  const record = Buffer.concat([cipher.update(padded), cipher.final(), cipher.getAuthTag()]);
  const recordSize = Buffer.alloc(4);
  recordSize.writeUInt32BE(Math.max(4_096, record.length));
  return Buffer.concat([salt, recordSize, Buffer.of(ours.length), ours, record]);
}

/** A VAPID key pair (RFC 8292), base64url. */
export function newVapidKeys(): { publicKey: string; privateKey: string } {
  const ecdh = createECDH("prime256v1");
  const publicKey = ecdh.generateKeys("base64url");
  // Node omits leading zeros.
  return {
    publicKey,
    privateKey: Buffer.from(ecdh.getPrivateKey("hex").padStart(64, "0"), "hex").toString("base64url"),
  };
}
