import { connect } from "node:http2";

type Headers = Readonly<Record<string, string>>;

export type FloorClient = {
  /** Resolves when the provider has accepted the push. */
  readonly push: (headers: Headers, body: string | Buffer) => Promise<void>;
  readonly close: () => void;
};

/** `node:http2` alone, over one connection to a sink whose CA is in BENCH_CA. */
export const connectFloor = async (url: string): Promise<FloorClient> => {
  const session = connect(url, { ca: process.env.BENCH_CA ?? "" });
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  session.setLocalWindowSize(1 << 24);
  const push = (headers: Headers, body: string | Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ":method": "POST", ...headers });
      let status = 0;
      stream.on("response", (answer) => {
        status = answer[":status"] ?? 0;
      });
      stream.on("error", reject);
      stream.on("close", () => {
        if (status === 200 || status === 201) resolve();
        else reject(new Error(`answered ${status}`));
      });
      stream.resume();
      stream.end(body);
    });
  return { push, close: () => session.close() };
};

/** The data of a push, built without Herald. */
export const pushData = {
  notification_id: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
  project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  token: "x".repeat(96),
};

/** The headers of Herald's requests to APNs. */
export const apnsHeaders: Headers = {
  ":path": `/3/device/${"a".repeat(64)}`,
  authorization: `bearer ${"x".repeat(220)}`,
  "apns-topic": "com.example.app",
  "apns-push-type": "alert",
  "apns-priority": "10",
  "apns-expiration": "1900000000",
  "apns-id": "123e4567-e89b-12d3-a456-426614174000",
  "apns-collapse-id": "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
};

export const apnsBody = (alert: { readonly title: string; readonly body: string }): string =>
  JSON.stringify({ aps: { alert }, ...pushData });
