/** `CryptoKey`, which is declared by the DOM's types or by Node's. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export const hmacKey = (bytes: Uint8Array<ArrayBuffer>, use: "sign" | "verify"): Promise<SigningKey> =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
