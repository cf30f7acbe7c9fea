import { createECDH, diffieHellman, generateKeyPairSync, randomBytes } from "node:crypto";
import { encryptPush, newSenderKeys } from "../../services/dispatch/src/providers/webpush/encryption.ts";
import { apnsBody, apnsHeaders, connectFloor, pushData } from "./floor-client.ts";

/**
 * The floor: `node:http2` alone sends the pushes over one connection with 500 in flight, and does nothing else; for Web Push it
 * encrypts each. A process of its own: `floor.ts <apns | fcm | webpush> <url> <pushes>`, CA in BENCH_CA. Prints
 * `{ pushes, seconds, cpuMicros, encryptMicros, agreeMicros }`. `encryptMicros` is the CPU of encryption alone, and `agreeMicros` its
 * part for the key agreement, which no sender can avoid. CPU counts all threads of the process.
 */

const inFlightMost = 500;
const [provider = "apns", url = "", count = "0"] = process.argv.slice(2);
const pushes = Number(count);
const client = await connectFloor(url);

const alert = { title: "Hello", body: "World" };
const browser = createECDH("prime256v1");
browser.generateKeys();
const keys = { p256dh: browser.getPublicKey("base64url"), auth: randomBytes(16).toString("base64url") };
/** As in Herald, one pair of keys serves a batch. */
const senderKeys = newSenderKeys();
const encrypt = async (): Promise<Buffer> => {
  const encrypted = await encryptPush(JSON.stringify({ ...pushData, ...alert }), keys, senderKeys);
  if ("problem" in encrypted) throw new Error(encrypted.problem);
  return encrypted.body;
};
const ours = generateKeyPairSync("ec", { namedCurve: "P-256" });
const theirs = generateKeyPairSync("ec", { namedCurve: "P-256" });
const agree = (): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const pair = { privateKey: ours.privateKey, publicKey: theirs.publicKey };
    diffieHellman(pair, (error, secret) => (error === null ? resolve(secret) : reject(error)));
  });

/** Requests like Herald's, built without Herald. */
const requests = {
  apns: { headers: apnsHeaders, body: () => apnsBody(alert) },
  fcm: {
    headers: {
      ":path": "/v1/projects/bench/messages:send",
      authorization: `Bearer ${"x".repeat(220)}`,
      "content-type": "application/json",
    },
    body: () =>
      JSON.stringify({
        message: { token: "a".repeat(160), notification: alert, data: pushData, android: { ttl: "3600s" } },
      }),
  },
  webpush: {
    headers: {
      ":path": `/push/${"a".repeat(64)}`,
      authorization: `vapid t=${"x".repeat(220)}, k=${"x".repeat(87)}`,
      ttl: "3600",
      urgency: "normal",
      topic: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
      "content-encoding": "aes128gcm",
      "content-type": "application/octet-stream",
    },
    body: encrypt,
  },
};
const request = requests[provider as keyof typeof requests];
/** Calls `once` `total` times with up to 500 in flight. Resolves to the CPU used, in microseconds. */
const repeat = async (total: number, once: () => Promise<unknown>): Promise<number> => {
  const before = process.cpuUsage();
  let left = total;
  const one = async () => {
    while (left-- > 0) await once();
  };
  await Promise.all(Array.from({ length: inFlightMost }, one));
  const { user, system } = process.cpuUsage(before);
  return user + system;
};
const push = async (): Promise<void> => {
  const body = request.body();
  await client.push(request.headers, typeof body === "string" ? body : await body);
};

// Warm up, because the services are warm too.
await repeat(Math.min(5_000, pushes), push);
const begin = performance.now();
const cpuMicros = await repeat(pushes, push);
const seconds = (performance.now() - begin) / 1000;
const encrypts = provider === "webpush" ? pushes : 0;
const encryptMicros = await repeat(encrypts, encrypt);
const agreeMicros = await repeat(encrypts, agree);
process.stdout.write(`${JSON.stringify({ pushes, seconds, cpuMicros, encryptMicros, agreeMicros })}\n`);
client.close();
