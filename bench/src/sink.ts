import { createServer as createControl } from "node:http";
import type { AddressInfo } from "node:net";
import { createSecureContext, createServer, type TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { markedFrom } from "./sinks.ts";

/**
 * A provider that accepts and counts all pushes. It handles HTTP/2 frames by hand over `node:tls` and does not decode HPACK: a sink as
 * expensive as the sender would limit the measurement. A process of its own, which takes 1 to 2 µs a push:
 * `sink.ts <apns | fcm | webpush>`. Prints one JSON line when it is ready: `{ url, ca, control, pid }`. On `control`, GET returns
 * `{ pushes, firstAt, lastAt, marked }`, DELETE resets these, and PUT `{ delayMs }` sets the delay of every answer.
 */

const preface = 24;
const frame = { data: 0, headers: 1, settings: 4, ping: 6 } as const;
const endStream = 1;
const endHeaders = 4;
const ack = 1;
/** Bytes that a client may send before a WINDOW_UPDATE: large, so that the sink rarely sends one. */
const connectionWindow = 1 << 30;
const regrantAfter = 1 << 28;

const head = (length: number, type: number, flags: number, stream: number): Buffer => {
  const bytes = Buffer.alloc(9);
  bytes.writeUIntBE(length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  return bytes;
};

const windowUpdate = (bytes: number): Buffer => {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(bytes);
  return Buffer.concat([head(4, 8, 0, 0), increment]);
};

/** SETTINGS_MAX_CONCURRENT_STREAMS = 1,000, as APNs says after the first valid request. */
const settings = Buffer.concat([head(6, frame.settings, 0, 0), Buffer.from([0, 3, 0, 0, 0x03, 0xe8])]);

/** A HEADERS frame: nine bytes of frame header, whose stream id is written later, then the HPACK block. */
const headers = (flags: number, ...hpack: number[]): Buffer =>
  Buffer.concat([head(hpack.length, frame.headers, flags | endHeaders, 0), Buffer.from(hpack)]);
const text = (words: string): number[] => [words.length, ...Buffer.from(words)];
/** The answer to pushes and to Google's token endpoint alike, because the sink ignores paths. */
const fcmBody = Buffer.from(
  JSON.stringify({ name: "projects/bench/messages/1", access_token: "bench", expires_in: 3_600, token_type: "Bearer" }),
);

/** The frames of an accepted push. HPACK: 0x88 is `:status: 200`, 0x08 another status, 0x0f 0x10 `content-type`, 0x00 any other name. */
const accepted: Readonly<Record<string, readonly Buffer[]>> = {
  apns: [headers(endStream, 0x88, 0x00, ...text("apns-id"), ...text("bench"))],
  fcm: [
    headers(0, 0x88, 0x0f, 0x10, ...text("application/json")),
    Buffer.concat([head(fcmBody.length, frame.data, endStream, 0), fcmBody]),
  ],
  webpush: [headers(endStream, 0x08, ...text("201"))],
};
const [provider = "apns"] = process.argv.slice(2);
const answer = accepted[provider];
if (answer === undefined) throw new Error(`there is no ${provider}; there are ${Object.keys(accepted).join(", ")}`);
const template = Buffer.concat(answer);
/** Offsets of the stream ids in the template: five bytes into each frame. */
const streamsAt = answer.map((_, index) => answer.slice(0, index).reduce((sum, { length }) => sum + length, 5));

/** The first byte of a push, which is JSON. A token request is a form. */
const brace = "{".charCodeAt(0);

/** `marked`: the arrival times of marked pushes, by title. `pushes` does not count them. */
const nothing = () => ({ pushes: 0, firstAt: 0, lastAt: 0, marked: {} as Record<string, number> });
let counted = nothing();
let delayMs = 0;

const markOf = (body: string): string | undefined => /"title":"(mark [^"]+)"/.exec(body)?.[1];

const serve = (socket: TLSSocket): void => {
  let rest: Buffer = Buffer.alloc(0);
  let prefaceLeft = preface;
  let received = 0;
  socket.on("error", () => socket.destroy());
  socket.write(Buffer.concat([settings, windowUpdate(connectionWindow)]));
  socket.on("data", (chunk: Buffer) => {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (prefaceLeft > 0) {
      if (bytes.length < preface) {
        rest = bytes;
        return;
      }
      bytes = bytes.subarray(preface);
      prefaceLeft = 0;
    }
    const answered: number[] = [];
    let noPushes = 0;
    const others: Buffer[] = [];
    let at = 0;
    while (bytes.length - at >= 9) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.length - at < 9 + length) break;
      const type = bytes[at + 3] ?? 0;
      const flags = bytes[at + 4] ?? 0;
      if ((type === frame.headers || type === frame.data) && (flags & endStream) !== 0)
        answered.push(bytes.readUInt32BE(at + 5));
      if (type === frame.data) received += length;
      if (type === frame.data && length > markedFrom) {
        const mark = markOf(bytes.toString("latin1", at + 9, at + 9 + length));
        if (mark !== undefined) {
          counted.marked[mark] = Date.now();
          noPushes++;
        }
      }
      if (type === frame.data && provider === "fcm" && length > 0 && bytes[at + 9] !== brace) noPushes++;
      if (type === frame.settings && (flags & ack) === 0) others.push(head(0, frame.settings, ack, 0));
      if (type === frame.ping && (flags & ack) === 0)
        others.push(head(8, frame.ping, ack, 0), bytes.subarray(at + 9, at + 17));
      at += 9 + length;
    }
    rest = at === bytes.length ? Buffer.alloc(0) : bytes.subarray(at);
    if (received > regrantAfter) {
      others.push(windowUpdate(received));
      received = 0;
    }
    if (answered.length > 0) {
      const now = Date.now();
      counted.pushes += answered.length - noPushes;
      counted.firstAt ||= now;
      counted.lastAt = now;
      const answers = Buffer.alloc(answered.length * template.length);
      for (const [index, stream] of answered.entries()) {
        const offset = index * template.length;
        template.copy(answers, offset);
        for (const at of streamsAt) answers.writeUInt32BE(stream, offset + at);
      }
      if (delayMs === 0) others.push(answers);
      else setTimeout(() => socket.writable && socket.write(answers), delayMs);
    }
    if (others.length === 1 && others[0]) socket.write(others[0]);
    else if (others.length > 0) socket.write(Buffer.concat(others));
  });
};

const certificate = await generate([{ name: "commonName", value: "localhost" }], {
  keyType: "ec",
  curve: "P-256",
  extensions: [
    { name: "basicConstraints", cA: true, critical: true },
    {
      name: "subjectAltName",
      altNames: [
        { type: 2, value: "localhost" },
        { type: 7, ip: "127.0.0.1" },
      ],
    },
  ],
});
const server = createServer(
  {
    ALPNProtocols: ["h2"],
    noDelay: true,
    secureContext: createSecureContext({ key: certificate.private, cert: certificate.cert }),
    key: certificate.private,
    cert: certificate.cert,
  },
  serve,
);
const control = createControl((request, response) => {
  if (request.method === "DELETE") counted = nothing();
  if (request.method === "PUT")
    request.setEncoding("utf8").on("data", (body: string) => ({ delayMs } = JSON.parse(body) as { delayMs: number }));
  response.setHeader("content-type", "application/json").end(JSON.stringify(counted));
});
const listen = (on: { listen: typeof server.listen }) =>
  new Promise<number>((resolve) => {
    on.listen(0, "127.0.0.1", () => resolve(((on as unknown as typeof server).address() as AddressInfo).port));
  });
const [port, controlPort] = [await listen(server), await listen(control as never)];
process.stdout.write(
  `${JSON.stringify({ url: `https://127.0.0.1:${port}`, ca: certificate.cert, control: `http://127.0.0.1:${controlPort}`, pid: process.pid })}\n`,
);
