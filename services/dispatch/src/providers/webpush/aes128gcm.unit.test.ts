import { expect, test } from "vitest";
import { encodeAes128gcm } from "./aes128gcm.ts";

const bytes = (text: string) => Buffer.from(text, "base64url");

test("is what RFC 8188 says (section 3.1)", () => {
  const body = encodeAes128gcm("I am the walrus", {
    keyingMaterial: bytes("yqdlZ-tYemfogSmv7Ws5PQ"),
    salt: bytes("I1BsxtFttlv3u_Oo94xnmw"),
    keyId: Buffer.alloc(0),
  });
  expect(body.toString("base64url")).toBe("I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg");
});
