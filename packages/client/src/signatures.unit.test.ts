import { createHmac, createPublicKey, verify } from "node:crypto";
import { expect, test } from "vitest";
import { Herald } from "./herald.ts";
import { createUserToken, verifyWebhook } from "./signatures.ts";

const key = Buffer.from("0123456789abcdef0123456789abcdef");
const secret = `whsec_${key.toString("base64")}`;
const body = JSON.stringify({
  id: "e1",
  type: "io.herald.notification.opened.v1",
  timestamp: "2030-01-31T09:00:00Z",
  data: { city: "Orléans" },
});

const sign = (text: string, timestamp: string, by = key) =>
  `v1,${createHmac("sha256", by).update(`msg_1.${timestamp}.${text}`).digest("base64")}`;
const now = () => String(Math.floor(Date.now() / 1_000));
const headersOf = (signature: string, timestamp = now()) => ({
  "webhook-id": "msg_1",
  "webhook-timestamp": timestamp,
  "webhook-signature": signature,
});

test("a message of Herald's is its event, whatever form its headers and body have", async () => {
  const headers = headersOf(sign(body, now()));
  const event = JSON.parse(body);
  expect(await verifyWebhook(headers, body, secret)).toEqual(event);
  expect(await verifyWebhook(new Headers(headers), Buffer.from(body), secret)).toEqual(event);
  const herald = new Herald({ url: "http://localhost", token: "hpt_1", webhookSecret: secret });
  expect(await herald.webhooks.verify(headers, body)).toEqual(event);
});

test("one of two signatures is enough while the secret is rotated", async () => {
  const headers = headersOf(`${sign(body, now(), Buffer.from("former"))} v1a,x ${sign(body, now())}`);
  expect(await verifyWebhook(headers, body, secret)).toMatchObject({ id: "e1" });
});

const old = String(Math.floor(Date.now() / 1_000) - 301);
test.each([
  ["another secret", headersOf(sign(body, now(), Buffer.from("another"))), body],
  ["another body", headersOf(sign(body, now())), `${body} `],
  ["another version", headersOf(sign(body, now()).replace("v1,", "v2,")), body],
  ["no base64", headersOf("v1,?"), body],
  ["an old message", headersOf(sign(body, old), old), body],
  ["no time", headersOf(sign(body, "x"), "x"), body],
  ["no signature", { "webhook-id": "msg_1", "webhook-timestamp": now() }, body],
])("refused: %s", async (_, headers, text) => {
  await expect(verifyWebhook(headers, text, secret)).rejects.toMatchObject({ slug: "signature-invalid" });
});

const parts = (token: string) =>
  token
    .split(".")
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()));

test("a user token is a JWT of the identity secret's bytes", async () => {
  const token = await createUserToken("u-17", {
    project: "prj_1",
    secret: "his_x",
    keyId: "idk_1",
    expiresInSeconds: 60,
  });
  const [header, claims] = parts(token);
  expect(header).toEqual({ alg: "HS256", typ: "JWT", kid: "idk_1" });
  expect(claims).toEqual({ sub: "u-17", aud: "prj_1", iat: claims.iat, exp: claims.iat + 60 });
  const [text, signature] = [token.slice(0, token.lastIndexOf(".")), token.split(".")[2]];
  expect(createHmac("sha256", "his_x").update(text).digest("base64url")).toBe(signature);
});

test.each([
  ["ES256", { name: "ECDSA", namedCurve: "P-256" }, { dsaEncoding: "ieee-p1363" as const }],
  ["EdDSA", { name: "Ed25519" }, {}],
  [
    "RS256",
    { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) },
    {},
  ],
])("a private key of one's own signs as %s", async (alg, algorithm, encoding) => {
  const pair = (await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as {
    privateKey: Parameters<typeof crypto.subtle.exportKey>[1];
    publicKey: Parameters<typeof crypto.subtle.exportKey>[1];
  };
  const token = await createUserToken("u-17", { project: "prj_1", secret: pair.privateKey });
  expect(parts(token)[0].alg).toBe(alg);
  const spki = Buffer.from((await crypto.subtle.exportKey("spki", pair.publicKey)) as ArrayBuffer);
  const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
  const text = Buffer.from(token.slice(0, token.lastIndexOf(".")));
  const signature = Buffer.from(token.split(".")[2] ?? "", "base64url");
  expect(verify(alg === "EdDSA" ? null : "sha256", text, { key: publicKey, ...encoding }, signature)).toBe(true);
});
