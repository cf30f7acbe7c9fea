import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { freePort } from "@herald/provision";
import { afterEach, describe, expect, it } from "vitest";
import { localhostCertificate } from "./certificates.ts";
import { createFixture, ids, kinds, push, sendAll } from "./fixture.ts";
import { Setting } from "./frames.ts";
import { createCounter } from "./strict-server.ts";

/** Connecting, respecting the peer's limits, and closing. */
const { serve, connect } = createFixture();

describe("connecting", () => {
  const plain: Server[] = [];
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const server of plain.splice(0)) await once(server.close(), "close");
  });

  /** A plain TCP server without HTTP/2, on `port` or any other. */
  async function tcp(onSocket: (socket: Socket) => void, port = 0) {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      sockets.push(socket);
      onSocket(socket);
    });
    plain.push(server);
    await once(server.listen(port, "127.0.0.1"), "listening");
    return { origin: `https://localhost:${(server.address() as AddressInfo).port}` };
  }

  it("answers every waiting request when the port is closed, with the reason", async () => {
    const transport = connect({ origin: `https://localhost:${await freePort()}` });
    const answers = await sendAll(transport, ids(100));
    expect(kinds(answers)).toEqual({ unprocessed: 100 });
    expect(answers[0]).toMatchObject({ reason: expect.stringMatching(/ECONNREFUSED|the proxy gives no connection/) });
  });

  it("backs off from a host that hangs up", async () => {
    let attempts = 0;
    const server = await tcp((socket) => {
      attempts++;
      socket.destroy();
    });
    const transport = connect(server);
    for (let round = 0; round < 50; round++)
      expect(kinds(await sendAll(transport, ids(20)))).toEqual({ unprocessed: 20 });
    expect(attempts).toBeLessThan(15);
  });

  it.each<[string, (socket: Socket) => void]>([
    ["never begins TLS", () => {}],
    ["speaks something else", (socket) => socket.write("SSH-2.0-OpenSSH_9\r\n")],
  ])("gives up on a peer that %s", async (_, onSocket) => {
    const transport = connect(await tcp(onSocket), { connectTimeoutMs: 100, requestTimeoutMs: 3_000 });
    expect(kinds(await sendAll(transport, ids(10)))).toEqual({ unprocessed: 10 });
  });

  it("writes nothing to a peer that never sends SETTINGS", async () => {
    const server = await serve({ onRequest() {} });
    const transport = connect(server, { connectTimeoutMs: 200, requestTimeoutMs: 3_000 });
    expect(kinds(await sendAll(transport, ids(10)))).toEqual({ unprocessed: 10 });
    expect(server.peers.reduce((sum, peer) => sum + peer.opened, 0)).toBe(0);
  });

  it("keeps to the request's timeout when connecting takes longer", async () => {
    const transport = connect(await tcp(() => {}), { connectTimeoutMs: 60_000, requestTimeoutMs: 200 });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "unprocessed" });
  });

  it("refuses a peer with an untrusted certificate, and one that does not speak HTTP/2", async () => {
    const { certificate, privateKey } = await localhostCertificate("localhost");
    const script = { settings: [], onRequest: () => {} } as const;
    const foreign = await serve(script, { cert: certificate, key: privateKey });
    expect(await connect(foreign).send(push("a"))).toMatchObject({
      kind: "unprocessed",
      reason: expect.stringMatching(/self-signed|certificate/i),
    });
    const old = await serve(script, { ALPNProtocols: ["http/1.1"] });
    expect(await connect(old).send(push("a"))).toMatchObject({ kind: "unprocessed" });
  });

  it("shows its certificate where the peer asks for one", async () => {
    const client = await localhostCertificate("Apple Push Services: com.example.app");
    const server = await serve(
      { settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) },
      { requestCert: true, rejectUnauthorized: true, ca: client.certificate },
    );
    expect(await connect(server, client).send(push("a"))).toMatchObject({ kind: "answered" });
    expect(server.peers[0]?.socket.getPeerCertificate().subject.CN).toBe("Apple Push Services: com.example.app");
    expect(await connect(server).send(push("a"))).toMatchObject({ kind: "unprocessed" });
  });

  it("resumes the TLS session of the connection before", async () => {
    const server = await serve({
      settings: [],
      onRequest: (peer, { streamId }) => peer.answer(streamId),
    });
    const transport = connect(server, { maxStreams: 1, connections: 1 });
    for (const id of ids(3)) expect(await transport.send(push(id))).toMatchObject({ kind: "answered" });
    expect(server.peers.map(({ resumed }) => resumed)).toEqual([false, true, true]);
  });

  it("delivers to a peer that comes up while requests wait or after they gave up", async () => {
    const port = await freePort();
    const transport = connect({ origin: `https://localhost:${port}` });
    expect(await transport.send(push("early"))).toMatchObject({ kind: "unprocessed" });
    const target = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) });
    await tcp((socket) => {
      const onward = new URL(target.origin).port;
      import("node:net").then(({ connect: dial }) => {
        const inner = dial(Number(onward), "127.0.0.1");
        inner.on("error", () => {});
        socket.pipe(inner).pipe(socket);
        socket.on("close", () => inner.destroy());
      });
    }, port);
    const trusting = connect({ origin: `https://localhost:${port}`, ca: target.ca });
    expect(await trusting.send(push("late"))).toMatchObject({ kind: "answered" });
  });

  it("asks the given look-up at every connect and opens nothing when it refuses", async () => {
    const server = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) });
    const refusing = connect(server, {
      lookup: (_hostname, _options, callback) => callback(new Error("not a public address"), "", 4),
    });
    expect(await refusing.send(push("a"))).toMatchObject({
      kind: "unprocessed",
      reason: expect.stringContaining("not a public address"),
    });
    expect(server.peers).toHaveLength(0);
  });
});

describe("limits of the peer", () => {
  it("opens one stream until the first request was accepted, then as many as allowed", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [[Setting.maxStreams, 1]],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        if (peer.opened === 1) peer.settings([Setting.maxStreams, 100]);
        setImmediate(() => peer.answer(streamId));
      },
    });
    const answers = await sendAll(connect(server, { connections: 2 }), ids(1_000));
    expect(kinds(answers)).toEqual({ answered: 1_000 });
    expect(counter.repeated).toEqual([]);
    expect(Math.max(...server.peers.map(({ maxOpen }) => maxOpen))).toBeGreaterThan(1);
  });

  it("never opens more than the peer or its own setting allows, also when the peer lowers its limit", async () => {
    const server = await serve({
      settings: [[Setting.maxStreams, 40]],
      onRequest(peer, { streamId }) {
        if (peer.opened === 100) peer.settings([Setting.maxStreams, 5]);
        setImmediate(() => peer.answer(streamId));
      },
    });
    expect(kinds(await sendAll(connect(server, { connections: 1 }), ids(600)))).toEqual({ answered: 600 });
    expect(server.peers[0]?.maxOpen).toBeLessThanOrEqual(40);
    const modest = connect(server, { connections: 1, maxInFlight: 3 });
    expect(kinds(await sendAll(modest, ids(50)))).toEqual({ answered: 50 });
    expect(server.peers[1]?.maxOpen).toBeLessThanOrEqual(3);
  });

  it("sends bodies through windows of a few bytes", async () => {
    const seen: string[] = [];
    const server = await serve({
      settings: [[Setting.initialWindow, 100]],
      windowStep: 33,
      onRequest(peer, { streamId, body }) {
        seen.push(body);
        peer.answer(streamId);
      },
    });
    const bodies = ids(20).map((id) => id.padEnd(5_000, "."));
    const transport = connect(server);
    const answers = await Promise.all(bodies.map((body) => transport.send({ ...push("a"), body })));
    expect(kinds(answers)).toEqual({ answered: 20 });
    expect(seen.sort()).toEqual(bodies.sort());
  });

  it("sends 30 MB of bodies to a peer that widens many windows at once", async () => {
    const server = await serve({
      settings: [],
      onHeaders(peer, streamId) {
        if (peer.opened === 1) peer.widen(0, 0x70000000);
        // Widens many windows together, so that the client could write all blocked bodies at once.
        if (streamId % 20 === 19) for (let id = streamId - 18; id <= streamId; id += 2) peer.widen(id, 0x70000000);
      },
      onRequest: (peer, { streamId, body }) => peer.answer(streamId, 200, String(body.length)),
    });
    const body = "x".repeat(300_000);
    const transport = connect(server, { connections: 1 });
    const answers = await Promise.all(ids(100).map(() => transport.send({ ...push("a"), body })));
    expect(answers).toEqual(
      answers.map(() => expect.objectContaining({ kind: "answered", status: 200, body: "300000" })),
    );
    expect(server.peers).toHaveLength(1);
  });

  it("replaces a connection before its stream ids run out, losing nothing", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        setImmediate(() => peer.answer(streamId));
      },
    });
    const transport = connect(server, { connections: 2, maxStreams: 50 });
    expect(kinds(await sendAll(transport, ids(1_000)))).toEqual({ answered: 1_000 });
    expect(counter.total).toBe(1_000);
    expect(counter.repeated).toEqual([]);
    expect(server.peers.length).toBeGreaterThanOrEqual(20);
    expect(Math.max(...server.peers.map(({ opened }) => opened))).toBeLessThanOrEqual(50);
  });
});

describe("closing", () => {
  it("waits for requests that were written, and accepts no new ones", async () => {
    const held: Array<() => void> = [];
    const server = await serve({
      settings: [[Setting.maxStreams, 5]],
      onRequest: (peer, { streamId }) => held.push(() => peer.answer(streamId)),
    });
    const transport = connect(server, { connections: 1 });
    const sent = sendAll(transport, ids(8));
    await expect.poll(() => held.length).toBe(5);
    const closed = transport.close();
    expect(await transport.send(push("late"))).toMatchObject({ kind: "unprocessed" });
    for (const answer of held) answer();
    await closed;
    expect(kinds(await sent)).toEqual({ answered: 5, unprocessed: 3 });
    expect(held).toHaveLength(5);
  });

  it("does not wait longer than its deadline, also twice", async () => {
    const server = await serve({ settings: [], onRequest() {} });
    const transport = connect(server, { closeTimeoutMs: 100 });
    const sent = sendAll(transport, ids(3));
    await expect.poll(() => server.peers[0]?.opened).toBe(3);
    await Promise.all([transport.close(), transport.close()]);
    expect(kinds(await sent)).toEqual({ unknown: 3 });
    await transport.close();
  });

  it("does not wait for a connection that is still being made", async () => {
    const transport = connect(await serve({ onRequest() {} }), { connectTimeoutMs: 60_000, closeTimeoutMs: 60_000 });
    const sent = transport.send(push("a"));
    await transport.close();
    expect(await sent).toMatchObject({ kind: "unprocessed" });
  });

  it("closes what was never used", async () => {
    await connect({ origin: "https://localhost:1" }).close();
  });
});
