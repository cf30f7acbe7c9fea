import { createECDH, createPrivateKey, type KeyObject } from "node:crypto";

/** A VAPID key pair (RFC 8292) as browsers and libraries exchange it: raw P-256 in base64url. */
export type VapidKeys = { readonly public_key: string; readonly private_key: string };

const curveName = "prime256v1";
const scalarBytes = 32;

export function newVapidKeys(): VapidKeys {
  const ecdh = createECDH(curveName);
  ecdh.generateKeys();
  // Node leaves out zeros at the front, and every 256th key begins with one.
  const scalar = Buffer.concat([Buffer.alloc(scalarBytes), ecdh.getPrivateKey()]).subarray(-scalarBytes);
  return { public_key: ecdh.getPublicKey("base64url"), private_key: scalar.toString("base64url") };
}

/** The public half of a private key; undefined when that is none. */
export function publicKeyOf(privateKey: string): string | undefined {
  const scalar = Buffer.from(privateKey, "base64url");
  if (scalar.length !== scalarBytes) return undefined;
  try {
    const ecdh = createECDH(curveName);
    ecdh.setPrivateKey(scalar);
    return ecdh.getPublicKey("base64url");
  } catch {
    return undefined;
  }
}

export function signingKey({ public_key, private_key }: VapidKeys): KeyObject {
  const point = Buffer.from(public_key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33, 65)].map((half) => half.toString("base64url"));
  return createPrivateKey({ key: { kty: "EC", crv: "P-256", x, y, d: private_key }, format: "jwk" });
}
