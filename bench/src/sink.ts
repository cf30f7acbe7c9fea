import { createServer as createControl } from "node:http";
import type { AddressInfo } from "node:net";
import { createSecureContext, createServer, type TLSSocket } from "node:tls";
import { generate } from "selfsigned";

/**
 * An APNs that answers 200 to everything and counts: HTTP/2 frames read and written by hand over `node:tls`, without HPACK,
 * because a sink that costs as much as the sender measures the sink. A process of its own, at 1 to 2 µs a push.
 * Prints one JSON line when it is ready: `{ url, ca, control }`; GET control gives `{ pushes, firstAt, lastAt }`, DELETE resets.
 */

const preface = 24;
const frame = { data: 0, headers: 1, settings: 4, ping: 6 } as const;
const endStream = 1;
const ack = 1;
/** Most frames are small: what a client may send before the sink must grant more. */
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

const counted = { pushes: 0, firstAt: 0, lastAt: 0 };

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
      counted.pushes += answered.length;
      counted.firstAt ||= now;
      counted.lastAt = now;
      // Each answer: nine bytes of head and one of HPACK, 0x88 = `:status: 200`.
      const answers = Buffer.alloc(answered.length * 10);
      for (const [index, stream] of answered.entries()) {
        const offset = index * 10;
        answers[offset + 2] = 1;
        answers[offset + 3] = frame.headers;
        answers[offset + 4] = 5;
        answers.writeUInt32BE(stream, offset + 5);
        answers[offset + 9] = 0x88;
      }
      others.push(answers);
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
  if (request.method === "DELETE") Object.assign(counted, { pushes: 0, firstAt: 0, lastAt: 0 });
  response.setHeader("content-type", "application/json").end(JSON.stringify(counted));
});
const listen = (on: { listen: typeof server.listen }) =>
  new Promise<number>((resolve) => {
    on.listen(0, "127.0.0.1", () => resolve(((on as unknown as typeof server).address() as AddressInfo).port));
  });
const [port, controlPort] = [await listen(server), await listen(control as never)];
process.stdout.write(
  `${JSON.stringify({ url: `https://127.0.0.1:${port}`, ca: certificate.cert, control: `http://127.0.0.1:${controlPort}` })}\n`,
);
