import { createECDH, randomBytes } from "node:crypto";
import { connect } from "node:http2";
import webPush from "web-push";

/**
 * The floor: `node:http2` alone sends so many pushes over one connection with 500 in flight, and does nothing else; for Web Push
 * it encrypts each. A process of its own: `floor.ts <apns | fcm | webpush> <url> <pushes>`, CA in BENCH_CA. Prints
 * `{ pushes, seconds, cpuMicros, encryptMicros }`, the last of them what encryption alone takes.
 */

const inFlightMost = 500;
const [provider = "apns", url = "", count = "0"] = process.argv.slice(2);
const pushes = Number(count);
const session = connect(url, { ca: process.env.BENCH_CA ?? "" });
await new Promise((resolve) => session.once("remoteSettings", resolve));
session.setLocalWindowSize(1 << 24);

const notification = {
  notification_id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
  project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  token: "x".repeat(96),
};
const alert = { title: "Hello", body: "World" };
const browser = createECDH("prime256v1");
browser.generateKeys();
const keys = { p256dh: browser.getPublicKey("base64url"), auth: randomBytes(16).toString("base64url") };
const encrypt = () =>
  webPush.encrypt(keys.p256dh, keys.auth, JSON.stringify({ ...notification, ...alert }), "aes128gcm").cipherText;

/** What Herald sends, without Herald. */
const requests = {
  apns: {
    headers: {
      ":path": `/3/device/${"a".repeat(64)}`,
      authorization: `bearer ${"x".repeat(220)}`,
      "apns-topic": "com.example.app",
      "apns-push-type": "alert",
      "apns-priority": "10",
      "apns-expiration": "1900000000",
      "apns-id": "123e4567-e89b-12d3-a456-426614174000",
      "apns-collapse-id": "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
    },
    body: () => JSON.stringify({ aps: { alert }, ...notification }),
  },
  fcm: {
    headers: {
      ":path": "/v1/projects/bench/messages:send",
      authorization: `Bearer ${"x".repeat(220)}`,
      "content-type": "application/json",
    },
    body: () =>
      JSON.stringify({
        message: { token: "a".repeat(160), notification: alert, data: notification, android: { ttl: "3600s" } },
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
const headers = { ":method": "POST", ...request.headers };

const run = (total: number): Promise<void> =>
  new Promise((resolve, reject) => {
    let started = 0;
    let done = 0;
    const next = (): void => {
      if (started === total) return;
      started++;
      const stream = session.request(headers);
      let status = 0;
      stream.on("response", (answer) => {
        status = answer[":status"] ?? 0;
      });
      stream.on("error", reject);
      stream.on("close", () => {
        if (status !== 200 && status !== 201) reject(new Error(`answered ${status}`));
        if (++done === total) resolve();
        else next();
      });
      stream.resume();
      stream.end(request.body());
    };
    for (let index = 0; index < Math.min(inFlightMost, total); index++) next();
  });

// Warm, as the services are.
await run(Math.min(5_000, pushes));
const cpu = process.cpuUsage();
const begin = performance.now();
await run(pushes);
const seconds = (performance.now() - begin) / 1000;
const { user, system } = process.cpuUsage(cpu);
const alone = process.cpuUsage();
if (provider === "webpush") for (let index = 0; index < pushes; index++) encrypt();
const { user: userAlone, system: systemAlone } = process.cpuUsage(alone);
const encryptMicros = provider === "webpush" ? userAlone + systemAlone : 0;
process.stdout.write(`${JSON.stringify({ pushes, seconds, cpuMicros: user + system, encryptMicros })}\n`);
session.close();
