import { describe, expect, it } from "vitest";
import type { TransportAnswer } from "../src/transport.ts";
import { createFixture, ids, kinds, push, sendAll } from "./fixture.ts";
import { Code, Setting } from "./frames.ts";
import type { StrictPeer } from "./strict-peer.ts";
import { createCounter } from "./strict-server.ts";

const gracefulStreamId = 0x7fffffff; // the first of two GOAWAYs: no new streams, but the peer acts on all that have arrived

/** Requests that the peer did not act on are sent again and processed once. */
const { serve, connect } = createFixture();

describe("GOAWAY", () => {
  it("delivers 1,500 requests once each where every connection goes away after 50", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [[Setting.maxStreams, 500]],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        peer.answer(streamId);
      },
      onHeaders(peer, streamId) {
        if (peer.opened === 50) peer.goaway(streamId);
      },
    });
    const answers = await sendAll(connect(server), ids(1_500));
    expect(kinds(answers)).toEqual({ answered: 1_500 });
    expect(counter.total).toBe(1_500);
    expect(counter.repeated).toEqual([]);
  });

  it("does so with answers that come later than the GOAWAY, and one connection at a time", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        setImmediate(() => setImmediate(() => peer.answer(streamId)));
      },
      onHeaders(peer, streamId) {
        if (peer.opened === 50) peer.goaway(streamId);
      },
    });
    const answers = await sendAll(connect(server, { connections: 1 }), ids(1_000));
    expect(kinds(answers)).toEqual({ answered: 1_000 });
    expect(counter.repeated).toEqual([]);
  });

  it("lets lower streams finish while new requests already use another connection", async () => {
    const held: Array<() => void> = [];
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        if (peer.number > 1) return peer.answer(streamId, 200, `second ${body}`);
        held.push(() => peer.answer(streamId, 200, `first ${body}`));
        if (held.length === 3) peer.goaway(gracefulStreamId);
      },
    });
    const transport = connect(server);
    const early = sendAll(transport, ids(3));
    await expect.poll(() => server.peers[0]?.pingsAcked).toBe(1);
    expect(await transport.send(push("late"))).toMatchObject({ kind: "answered", body: "second late" });
    server.peers[0]?.goaway(5);
    for (const answer of held) answer();
    expect((await early).map((answer) => answer.kind === "answered" && answer.body)).toEqual(
      ids(3).map((id) => `first ${id}`),
    );
  });

  it("delivers once each where every connection ends politely, with two GOAWAYs, under steady load", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        setImmediate(() => peer.answer(streamId));
      },
      onHeaders(peer, streamId) {
        if (peer.opened !== 50) return;
        peer.goaway(gracefulStreamId);
        // A round trip later the peer has all streams that the client opened before it read the first GOAWAY.
        setTimeout(() => peer.goaway(Math.max(streamId, peer.lastStreamId)), 5);
      },
    });
    const transport = connect(server);
    const bodies = ids(1_500);
    const answers: TransportAnswer[] = [];
    let next = 0;
    const lane = async () => {
      for (let body = bodies[next++]; body !== undefined; body = bodies[next++])
        answers.push(await transport.send(push(body)));
    };
    await Promise.all(Array.from({ length: 200 }, lane));
    expect(kinds(answers)).toEqual({ answered: 1_500 });
    expect(counter.total).toBe(1_500);
    expect(counter.repeated).toEqual([]);
  });

  it("sends again what is above the last stream of a GOAWAY that carries an error, and nothing else", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        if (peer.number > 1 || streamId <= 9) counter.act(body);
        if (peer.number > 1) peer.answer(streamId);
        else if (streamId === 19) peer.goaway(9, Code.enhanceYourCalm, "slow down");
      },
    });
    const answers = await sendAll(connect(server), ids(10));
    // The peer acted on the five below the limit but never answered, so the transport must not repeat them.
    expect(kinds(answers)).toEqual({ answered: 5, unknown: 5 });
    expect(counter.total).toBe(10);
    expect(counter.repeated).toEqual([]);
  });

  it("tells the caller of a peer that goes away without serving anything, and does not hammer it", async () => {
    const server = await serve({
      settings: [],
      onHeaders: (peer) => peer.goaway(0, Code.noError, '{"reason":"Shutdown"}'),
      onRequest() {},
    });
    const answers = await sendAll(connect(server, { requestTimeoutMs: 5_000 }), ids(20));
    expect(kinds(answers)).toEqual({ unprocessed: 20 });
    expect(answers[0]).toMatchObject({ reason: expect.stringContaining("Shutdown") });
    expect(server.peers.length).toBeLessThan(20);
  });
});

describe("RST_STREAM", () => {
  it("delivers once each what was refused, however often", async () => {
    const counter = createCounter();
    let turn = 0;
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        if (turn++ % 3 === 0) return peer.reset(streamId, Code.refusedStream);
        counter.act(body);
        peer.answer(streamId);
      },
    });
    const answers = await sendAll(connect(server), ids(600));
    expect(kinds(answers)).toEqual({ answered: 600 });
    expect(counter.total).toBe(600);
    expect(counter.repeated).toEqual([]);
  });

  it("delivers to a peer that serves fewer streams than it announced", async () => {
    const open = new Map<StrictPeer, number>();
    const counter = createCounter();
    const server = await serve({
      settings: [[Setting.maxStreams, 1_000]],
      onRequest(peer, { streamId, body }) {
        const under = open.get(peer) ?? 0;
        if (under >= 5) return peer.reset(streamId, Code.refusedStream);
        open.set(peer, under + 1);
        counter.act(body);
        setImmediate(() => {
          open.set(peer, (open.get(peer) ?? 1) - 1);
          peer.answer(streamId);
        });
      },
    });
    expect(kinds(await sendAll(connect(server), ids(1_000)))).toEqual({ answered: 1_000 });
    expect(counter.repeated).toEqual([]);
  });

  it("stops resending to a peer that refuses everything, after a bounded number of attempts", async () => {
    let seen = 0;
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId }) {
        seen++;
        peer.reset(streamId, Code.refusedStream);
      },
    });
    expect(kinds(await sendAll(connect(server, { maxResends: 5 }), ids(50)))).toEqual({ unprocessed: 50 });
    expect(seen).toBeLessThanOrEqual(50 * 6);
  });

  it.each([
    ["INTERNAL_ERROR", Code.internalError],
    ["PROTOCOL_ERROR", Code.protocolError],
    ["CANCEL", Code.cancel],
    ["ENHANCE_YOUR_CALM", Code.enhanceYourCalm],
    ["NO_ERROR", Code.noError],
    ["an unknown code", 4_711],
  ])("calls a request unknown that was reset with %s, and sends it once", async (_, code) => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        peer.reset(streamId, code);
      },
    });
    const answers = await sendAll(connect(server), ids(5));
    expect(kinds(answers)).toEqual({ unknown: 5 });
    expect(counter.repeated).toEqual([]);
  });

  it("does not send again what was refused after its answer had begun", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        peer.headers(streamId, [[":status", "200"]]);
        setTimeout(() => peer.reset(streamId, Code.refusedStream), 20);
      },
    });
    expect(await connect(server).send(push("a"))).toMatchObject({ kind: "unknown" });
    expect(counter.times("a")).toBe(1);
  });
});
