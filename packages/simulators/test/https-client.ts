import { connect } from "node:http2";
import { request } from "node:https";

export interface HttpAnswer {
  /** 0 when no answer arrived. */
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface HttpParts {
  readonly method?: string;
  readonly path: string;
  /** Undefined headers are not sent. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer;
}

const given = (headers: HttpParts["headers"] = {}) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));

/** Sends one request over HTTP/2 on a new connection. Never rejects. */
export function callH2(
  url: string,
  ca: string,
  { method = "POST", path, headers, body = "" }: HttpParts,
): Promise<HttpAnswer> {
  const session = connect(url, { ca });
  session.on("error", () => {});
  const stream = session.request({ ":method": method, ":path": path, ...given(headers) }, { endStream: false });
  stream.end(body);
  return new Promise((resolve) => {
    let answer: HttpAnswer = { status: 0, headers: {}, body: "" };
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (received) => {
      answer = { status: Number(received[":status"]), headers: received, body: "" };
    });
    stream.on("data", (chunk: string) => {
      text += chunk;
    });
    stream.on("error", () => {});
    stream.on("close", () => {
      session.destroy();
      resolve({ ...answer, body: text });
    });
  });
}

/** Sends one request over HTTP/1.1. Rejects when the connection breaks. */
export function callH1(
  url: string,
  ca: string,
  { method = "POST", path, headers, body = "" }: HttpParts,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url + path, { method, headers: given(headers), ca, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
