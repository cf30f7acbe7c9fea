import { once } from "node:events";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { TransportRequest } from "../src/transport.ts";
import { localhostCertificate } from "./certificates.ts";
import { createFixture, ids, push } from "./fixture.ts";

type Seen = { headers: Array<[string, string]>; body: Buffer };

/** Interoperation with a full server: nghttp2, which is strict about messages and compression. */
const { connect } = createFixture();

describe("a full server", () => {
  const servers: Http2SecureServer[] = [];
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.close();
      // A socket that is still connecting has no session yet and would keep the server open.
      for (const socket of sockets.splice(0)) socket.destroy();
      await once(server, "close");
    }
  });

  async function full(headerTableSize: number, answer: (stream: ServerHttp2Stream, seen: Seen) => void) {
    const { certificate, privateKey } = await localhostCertificate();
    const server = createSecureServer({ cert: certificate, key: privateKey, settings: { headerTableSize } });
    servers.push(server);
    server.on("connection", (socket: Socket) => sockets.push(socket));
    server.on("stream", async (stream: ServerHttp2Stream, _headers: unknown, _flags: number, raw: string[]) => {
      stream.on("error", () => {});
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      const headers: Array<[string, string]> = [];
      for (let at = 0; at < raw.length; at += 2) headers.push([raw[at] ?? "", raw[at + 1] ?? ""]);
      answer(stream, { headers, body: Buffer.concat(chunks) });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { origin: `https://localhost:${(server.address() as AddressInfo).port}`, ca: certificate };
  }

  const requests: TransportRequest[] = [
    { path: "/", headers: {}, body: "" },
    {
      path: "/3/device/00ff?a=b",
      headers: { "apns-id": "1", "apns-expiration": "0" },
      body: '{"aps":{"alert":"żółw 🐢"}}',
    },
    {
      path: `/${"p".repeat(4_000)}`,
      headers: { authorization: `bearer ${"j".repeat(6_000)}`, empty: "" },
      body: "x",
    },
    { path: "/b", headers: { ttl: "0" }, body: Uint8Array.from({ length: 5_000 }, (_, index) => index % 256) },
    { path: "/~!$&'()*+,;=:@%20", headers: { "x-a": "a b\tc", "x~!#$%&'*+-.^_`|": "~" }, body: "y".repeat(60_000) },
  ];

  it.each([4_096, 0, 65_536])("reads every request as it was given, with a header table of %i", async (size) => {
    const seen: Seen[] = [];
    const server = await full(size, (stream, read) => {
      seen.push(read);
      stream.respond({ ":status": 200 }, { endStream: true });
    });
    const transport = connect(server);
    for (const request of [...requests, ...requests]) {
      expect(await transport.send(request)).toMatchObject({ kind: "answered", status: 200 });
      const { headers, body } = seen.at(-1) as Seen;
      const pseudo = headers.filter(([name]) => name.startsWith(":"));
      expect(headers.slice(0, 4)).toEqual(pseudo);
      expect(Object.fromEntries(pseudo)).toEqual({
        ":method": "POST",
        ":scheme": "https",
        ":authority": new URL(server.origin).host,
        ":path": request.path,
      });
      expect(Object.fromEntries(headers.slice(4))).toEqual(request.headers);
      expect(body).toEqual(Buffer.from(request.body));
    }
    expect(seen).toHaveLength(requests.length * 2);
  });

  it("reads compressed answers: Huffman codes, indexed fields, a table that overflows", async () => {
    const server = await full(4_096, (stream, { body }) =>
      stream.respond(
        { ":status": 200, "apns-id": body.toString(), "x-long": `${body}-${"z".repeat(150)}` },
        { endStream: true },
      ),
    );
    const transport = connect(server);
    const bodies = ids(1_000);
    const answers = await Promise.all(bodies.map((id) => transport.send(push(id))));
    expect(answers.map((answer) => answer.kind === "answered" && answer.headers["apns-id"])).toEqual(bodies);
  });
});
