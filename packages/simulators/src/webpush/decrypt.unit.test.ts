import { createECDH } from "node:crypto";
import { describe, expect, it } from "vitest";
import { encrypt as encryptFor } from "../../test/webpush-sender.ts";
import { decryptPush } from "./decrypt.ts";

const bytes = (text: string) => Buffer.from(text, "base64url");
const subscriber = (privateKey?: string) => {
  const ecdh = createECDH("prime256v1");
  if (privateKey === undefined) ecdh.generateKeys();
  else ecdh.setPrivateKey(bytes(privateKey));
  return { ecdh, auth: bytes("BTBZMqHH6r4Tts7J_aSIgg") };
};
const encrypt = (text: string, { ecdh, auth }: ReturnType<typeof subscriber>, padding?: number) =>
  encryptFor(text, { p256dh: ecdh.getPublicKey("base64url"), auth: auth.toString("base64url") }, padding);

describe("an aes128gcm body", () => {
  it("is read as RFC 8291's example says (section 5)", () => {
    const body = bytes(
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
    );
    expect(decryptPush(body, subscriber("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))).toBe(
      "When I grow up, I want to be a watermelon",
    );
  });

  it("is read whatever its length and its padding", () => {
    const browser = subscriber();
    for (const text of ["", "Grüße", "ends like padding\u0002\0\0", "x".repeat(3_993)]) {
      expect(decryptPush(encrypt(text, browser), browser)).toBe(text);
      expect(decryptPush(encrypt(text, browser, 64), browser)).toBe(text);
    }
  });
});

describe("a body that cannot be read", () => {
  const browser = subscriber();
  const good = encrypt("hello", browser);
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(good);
    copy[at] = value;
    return copy;
  };
  const wrong: [string, Buffer, RegExp][] = [
    ["short", good.subarray(0, 20), /shorter than the header/],
    ["without a record", good.subarray(0, 86), /no record/],
    ["cut off", good.subarray(0, -1), /does not decrypt/],
    ["changed", changed(good.length - 1, (good.at(-1) ?? 0) ^ 1), /does not decrypt/],
    ["with a tiny record size", changed(19, 1).fill(0, 16, 19), /record size/],
    ["with more than one record", changed(18, 0).fill(0, 16, 18).fill(18, 19, 20), /more than one record/],
    ["with another key id", changed(20, 10), /key id is not/],
    ["with a key that is no point", changed(30, (good[30] ?? 0) ^ 1), /not a point/],
    ["for another browser", encrypt("hello", subscriber()), /does not decrypt/],
  ];
  it.each(wrong)("%s", (_name, body, message) => expect(() => decryptPush(body, browser)).toThrow(message));
});
