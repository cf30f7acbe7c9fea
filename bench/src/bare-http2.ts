import { connect } from "node:http2";

/**
 * The floor: `node:http2` alone sends so many pushes over one connection with 500 in flight, and does nothing else.
 * A process of its own: `bare-http2.ts <url> <pushes>`, CA in BENCH_CA. Prints `{ pushes, seconds, cpuMicros }`.
 */

const inFlightMost = 500;
const [url = "", count = "0"] = process.argv.slice(2);
const pushes = Number(count);
const session = connect(url, { ca: process.env.BENCH_CA ?? "" });
await new Promise((resolve) => session.once("remoteSettings", resolve));
session.setLocalWindowSize(1 << 24);

const headers = {
  ":method": "POST",
  ":path": `/3/device/${"a".repeat(64)}`,
  authorization: `bearer ${"x".repeat(220)}`,
  "apns-topic": "com.example.app",
  "apns-push-type": "alert",
  "apns-priority": "10",
  "apns-expiration": "1900000000",
  "apns-id": "123e4567-e89b-12d3-a456-426614174000",
  "apns-collapse-id": "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
};
const body = JSON.stringify({
  aps: { alert: { title: "Hello", body: "World" } },
  notification_id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
  project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  token: "x".repeat(94),
});

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
        if (status !== 200) reject(new Error(`answered ${status}`));
        if (++done === total) resolve();
        else next();
      });
      stream.resume();
      stream.end(body);
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
process.stdout.write(`${JSON.stringify({ pushes, seconds, cpuMicros: user + system })}\n`);
session.close();
