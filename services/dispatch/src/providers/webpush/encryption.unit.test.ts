import { createECDH, createPrivateKey, randomBytes } from "node:crypto";
import type { WebPushKeys } from "@herald/contracts";
import { webPushMaxBytes } from "@herald/payload";
import { decryptPush } from "@herald/simulators/decrypt";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { encodeAes128gcm, encryptPush, newSenderKeys, type SenderKeys } from "./encryption.ts";

const bytes = (text: string) => Buffer.from(text, "base64url");

/** A browser's side of a subscription. */
function subscribe() {
  const ecdh = createECDH("prime256v1");
  const p256dh = ecdh.generateKeys("base64url");
  const auth = randomBytes(16);
  return { ecdh, auth, keys: { p256dh, auth: auth.toString("base64url") } };
}

async function encrypted(text: string, keys: WebPushKeys | undefined, sender: SenderKeys, salt?: Buffer) {
  const result = await encryptPush(text, keys, sender, salt);
  if ("problem" in result) throw new Error(result.problem);
  return result.body;
}

test("is what RFC 8291 says (section 5)", async () => {
  const point = bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
  const d = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
  const privateKey = createPrivateKey({ key: { kty: "EC", crv: "P-256", x, y, d }, format: "jwk" });
  const keys = {
    p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  };
  const text = "When I grow up, I want to be a watermelon";
  const body = await encrypted(text, keys, { privateKey, point }, bytes("DGv6ra1nlYgDCS1FRnbzlw"));
  expect(body.toString("base64url")).toBe(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
  );
});

describe("a body", () => {
  const browser = subscribe();
  const sender = newSenderKeys();

  it("is decrypted by the browser, whatever the text", async () => {
    // Characters of one to four bytes. The first three look like padding, or like the delimiter before it.
    const parts = fc.string({ unit: fc.constantFrom("\0", "\u0001", "\u0002", "x", "ż", "字", "🐢") });
    const texts = fc.tuple(fc.nat(webPushMaxBytes), parts).map(([size, part]) => {
      return part.repeat(Math.floor(size / (Buffer.byteLength(part) || 1)));
    });
    // Many in parallel: in sequence, each would wait for a thread.
    const lists = fc.array(texts, { minLength: 50, maxLength: 50 });
    const limits = ["", "x", "x".repeat(webPushMaxBytes), "ż".repeat(1_996)];
    await fc.assert(
      fc.asyncProperty(lists, async (list) => {
        const bodies = await Promise.all(list.map((text) => encrypted(text, browser.keys, sender)));
        expect(bodies.map((body) => decryptPush(body, browser))).toEqual(list);
      }),
      { numRuns: 4, examples: [[limits]] },
    );
  });

  it("has 103 bytes more than the text, and 4,096 at the most", async () => {
    expect(await encrypted("", browser.keys, sender)).toHaveLength(103);
    expect(await encrypted("ż", browser.keys, sender)).toHaveLength(105);
    expect(await encrypted("x".repeat(webPushMaxBytes), browser.keys, sender)).toHaveLength(4_096);
  });

  it("is read whatever the pair: also where a coordinate or the secret begins with a zero", async () => {
    // One in 256 numbers begins with a zero: among 300, two runs of three have one.
    const pairs = Array.from({ length: 300 }, () => ({ from: newSenderKeys(), to: subscribe() }));
    await Promise.all(
      pairs.map(async ({ from, to }) => {
        expect(from.point).toHaveLength(65);
        expect(decryptPush(await encrypted("hello", to.keys, from), to)).toBe("hello");
      }),
    );
  });

  it("has a salt of its own, and the sender's key", async () => {
    const bodies = await Promise.all(Array.from({ length: 500 }, () => encrypted("hello", browser.keys, sender)));
    expect(new Set(bodies.map((body) => body.toString("hex", 0, 16))).size).toBe(500);
    for (const body of bodies) expect(body.subarray(21, 86)).toEqual(sender.point);
    expect(newSenderKeys().point).not.toEqual(sender.point);
  });

  it("cannot be decrypted by another browser", async () => {
    const body = await encrypted("hello", browser.keys, sender);
    expect(() => decryptPush(body, subscribe())).toThrow("does not decrypt");
    expect(() => decryptPush(body, { ...browser, auth: randomBytes(16) })).toThrow("does not decrypt");
  });
});

describe("the keys of a subscription", () => {
  const { ecdh, keys } = subscribe();
  const point = ecdh.getPublicKey();
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(point);
    copy[at] = value;
    return { p256dh: copy.toString("base64url") };
  };
  const noPoint = "keys.p256dh: not an uncompressed point of P-256";
  it.each<[string, Partial<WebPushKeys>, string]>([
    ["is not on the curve", changed(64, (point[64] ?? 0) ^ 1), noPoint],
    [
      "has coordinates beyond the field",
      { p256dh: Buffer.alloc(65, 255).fill(4, 0, 1).toString("base64url") },
      noPoint,
    ],
    ["is zero", { p256dh: Buffer.alloc(65).fill(4, 0, 1).toString("base64url") }, noPoint],
    ["is compressed", { p256dh: ecdh.getPublicKey("base64url", "compressed") }, noPoint],
    ["is in the hybrid form", { p256dh: ecdh.getPublicKey("base64url", "hybrid") }, noPoint],
    ["is too short", { p256dh: keys.p256dh.slice(0, 80) }, noPoint],
    ["is empty", { p256dh: "" }, noPoint],
  ])("are refused where the point %s", async (_, wrong, problem) => {
    expect(await encryptPush("hello", { ...keys, ...wrong }, newSenderKeys())).toEqual({ problem });
  });

  it.each([
    ["AAAA", 3],
    [Buffer.alloc(17).toString("base64url"), 17],
    ["", 0],
  ])("are refused where the secret is %j", async (auth, length) => {
    expect(await encryptPush("hello", { ...keys, auth }, newSenderKeys())).toEqual({
      problem: `keys.auth: ${length} bytes, must be 16`,
    });
  });

  it("are missed", async () => {
    expect(await encryptPush("hello", undefined, newSenderKeys())).toEqual({
      problem: "keys: the subscription has none",
    });
  });

  it("may be padded, as base64 is", async () => {
    const padded = { p256dh: `${keys.p256dh}=`, auth: `${keys.auth}==` };
    expect(await encryptPush("hello", padded, newSenderKeys())).toHaveProperty("body");
  });

  it("and any other text are problems of that subscription alone", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.uint8Array({ minLength: 65, maxLength: 65 }), async (text, array) => {
        array[0] = 4;
        const points = [text, Buffer.from(array).toString("base64url")];
        for (const p256dh of points)
          expect(await encryptPush("hello", { ...keys, p256dh }, newSenderKeys())).toHaveProperty("problem");
      }),
      { numRuns: 200 },
    );
  });
});

test("is what RFC 8188 says (section 3.1)", () => {
  const body = encodeAes128gcm("I am the walrus", {
    keyingMaterial: bytes("yqdlZ-tYemfogSmv7Ws5PQ"),
    salt: bytes("I1BsxtFttlv3u_Oo94xnmw"),
    keyId: Buffer.alloc(0),
  });
  expect(body.toString("base64url")).toBe("I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg");
});
