import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientSessionOptions,
  connect,
  type SecureClientSessionOptions,
} from "node:http2";
import { importPKCS8, SignJWT } from "jose";

export interface Answer {
  /** 0 when no answer arrived. */
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** The code of the RST_STREAM, or 0. */
  readonly rst: number;
}

export const deviceToken = (n: number) => n.toString(16).padStart(64, "0");

/** An unsigned provider token, valid for a simulator without keys. */
export function providerToken({
  kid = "KEY1234567",
  iss = "TEAM123456",
  iat = Math.floor(Date.now() / 1000),
  alg = "ES256",
} = {}) {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  return `${encode({ alg, kid })}.${encode({ iss, iat })}.c2lnbmF0dXJl`;
}

export async function signedProviderToken(
  privateKey: string,
  kid: string,
  iss: string,
  iat = Math.floor(Date.now() / 1000),
) {
  const key = await importPKCS8(privateKey, "ES256");
  return new SignJWT({ iss, iat }).setProtectedHeader({ alg: "ES256", kid }).sign(key);
}

export const validHeaders = (token = providerToken()): Record<string, string> => ({
  authorization: `bearer ${token}`,
  "apns-topic": "org.example.app",
  "apns-push-type": "alert",
  "apns-priority": "10",
  "apns-expiration": "0",
  "apns-id": "11111111-2222-4333-8444-555555555555",
});

export const validPayload = JSON.stringify({ aps: { alert: { title: "Hello", body: "World" } }, link_to: "/news/1" });

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  readonly token?: string;
  /** Overrides the valid headers; undefined removes a header. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly payload?: string;
}

/** One HTTP/2 connection to the APNs simulator. */
export async function connectApns(
  { apns, ca }: { readonly apns: { readonly url: string }; readonly ca: string },
  options: SecureClientSessionOptions | ClientSessionOptions = {},
) {
  const session: ClientHttp2Session = connect(apns.url, { ca, ...options });
  const goaways: { code: number; last: number; data: string }[] = [];
  session.on("error", () => {});
  session.on("goaway", (code, last, data) => goaways.push({ code, last, data: data?.toString() ?? "" }));
  await once(session, "remoteSettings");

  const open = ({
    method = "POST",
    token = deviceToken(1),
    path = `/3/device/${token}`,
    headers = {},
    payload = validPayload,
  }: RequestParts = {}) => {
    const all = Object.fromEntries(
      Object.entries({ ...validHeaders(), ...headers }).filter(([, value]) => value !== undefined),
    );
    const stream = session.request({ ":method": method, ":path": path, ...all }, { endStream: false });
    stream.end(payload);
    return stream;
  };

  return {
    session,
    goaways,
    /** Starts a request without waiting for its answer. */
    open,
    /** Never rejects: a broken stream is an answer with status 0. */
    send(parts: RequestParts = {}): Promise<Answer> {
      const stream = open(parts);
      return new Promise((resolve) => {
        let status = 0;
        let body = "";
        let headers: Answer["headers"] = {};
        stream.setEncoding("utf8");
        stream.on("response", (received) => {
          status = Number(received[":status"]);
          headers = received;
        });
        stream.on("data", (text: string) => {
          body += text;
        });
        stream.on("error", () => {});
        stream.on("close", () => resolve({ status, headers, body, rst: stream.rstCode ?? 0 }));
      });
    },
    close: () => session.destroy(),
  };
}

export type ApnsClient = Awaited<ReturnType<typeof connectApns>>;
