import { describe, expect, it } from "vitest";
import type { Transport } from "../src/transport.ts";
import { createFixture, ids, isolated, kinds, push, sendAll } from "./fixture.ts";
import { Code, FrameType, frame } from "./frames.ts";
import { createCounter } from "./strict-server.ts";

/** Broken sockets, and peers that stop answering. */
const { serve, connect } = createFixture();

describe("a lost socket", () => {
  it.each<[string, (peer: import("./strict-peer.ts").StrictPeer, id: number) => void]>([
    ["before the answer", (peer) => peer.cut()],
    [
      "inside the answer's headers",
      (peer, id) => {
        peer.raw(frame(FrameType.headers, 4, id, Buffer.alloc(50)).subarray(0, 20));
        peer.socket.end();
      },
    ],
    [
      "inside the answer's body",
      (peer, id) => {
        peer.headers(id, [
          [":status", "200"],
          ["content-length", "100"],
        ]);
        peer.data(id, "half");
        peer.socket.end();
      },
    ],
    ["with a polite end", (peer) => peer.socket.end()],
  ])("makes what was written unknown: %s", async (_, lose) => {
    const counter = createCounter();
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        if (peer.number > 1) peer.answer(streamId);
        else if (counter.total === 10) lose(peer, streamId);
      },
    });
    const transport = connect(server, { connections: 1 });
    expect(kinds(await sendAll(transport, ids(10)))).toEqual({ unknown: 10 });
    expect(counter.repeated).toEqual([]);
    expect(await transport.send(push("next"))).toMatchObject({ kind: "answered", status: 200 });
  });

  it("makes a request that is being written unknown, and it is not sent again", async () => {
    let requests = 0;
    const server = await serve({
      settings: [[4, 100]], // a window of 100 bytes holds the rest of the body back
      alive: false,
      onRequest() {},
      onHeaders(peer) {
        requests++;
        setTimeout(() => peer.cut(), 50);
      },
    });
    const answer = await connect(server).send({ ...push("a"), body: "x".repeat(4_000) });
    expect(answer.kind).toBe("unknown");
    expect(requests).toBe(1);
  });

  it("sends what had not been written over another connection", async () => {
    const counter = createCounter();
    const server = await serve({
      settings: [[3, 10]],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        if (peer.number > 1) peer.answer(streamId);
        else if (counter.total === 10) peer.cut();
      },
    });
    const answers = await sendAll(connect(server, { connections: 1 }), ids(100));
    expect(kinds(answers)).toEqual({ unknown: 10, answered: 90 });
    expect(counter.total).toBe(100);
    expect(counter.repeated).toEqual([]);
  });

  it("continues when every connection breaks after 20 requests", async () => {
    const counter = createCounter();
    const served = new Map<number, number>();
    const server = await serve({
      settings: [[3, 1]],
      onRequest(peer, { streamId, body }) {
        counter.act(body);
        const count = (served.get(peer.number) ?? 0) + 1;
        served.set(peer.number, count);
        if (count < 20) peer.answer(streamId);
        else peer.socket.end();
      },
    });
    const answers = await sendAll(connect(server), ids(500));
    expect(answers.filter(({ kind }) => kind === "unprocessed")).toEqual([]);
    expect(counter.repeated).toEqual([]);
    expect(counter.total).toBe(500);
    const { answered, unknown } = kinds(answers);
    expect((answered ?? 0) + (unknown ?? 0)).toBe(500);
    expect(unknown).toBe([...served.values()].filter((count) => count === 20).length);
  });
});

describe.concurrent("a peer that never answers", () => {
  /** Connects first, so that the test measures the peer and not the connect time. */
  const warm = async (transport: Transport) =>
    expect(await transport.send(push("warm"))).toMatchObject({ kind: "answered" });

  isolated(
    "makes the request unknown, cancels its stream, sends a PING, and keeps the connection",
    async ({ expect, fixture: { serve, connect } }) => {
      const server = await serve({
        settings: [],
        onRequest(peer, { streamId, body }) {
          if (body !== "silent") peer.answer(streamId);
        },
      });
      const transport = connect(server, { requestTimeoutMs: 2_000, connections: 1 });
      await warm(transport);
      const answers = await sendAll(transport, ["silent", "a", "b"]);
      expect(answers.map(({ kind }) => kind)).toEqual(["unknown", "answered", "answered"]);
      await expect.poll(() => server.peers[0]?.resets).toEqual([{ streamId: 3, code: Code.cancel }]);
      await expect.poll(() => server.peers[0]?.pingsReceived).toBe(1);
      expect(await transport.send(push("c"))).toMatchObject({ kind: "answered" });
      expect(server.peers).toHaveLength(1);
      expect(server.peers[0]?.opened).toBe(5);
    },
  );

  isolated(
    "frees the places of many, so that later requests get through",
    async ({ expect, fixture: { serve, connect } }) => {
      let silent = false;
      const server = await serve({
        settings: [[3, 50]],
        onRequest: (peer, { streamId }) => (silent ? undefined : peer.answer(streamId)),
      });
      const transport = connect(server, { requestTimeoutMs: 2_000, connections: 1 });
      await warm(transport);
      silent = true;
      // Waiting requests may take the streams of timed-out ones before their own deadline, one tick later.
      const { unknown = 0, unprocessed = 0 } = kinds(await sendAll(transport, ids(200)));
      expect(unknown).toBeGreaterThanOrEqual(50);
      expect(unknown + unprocessed).toBe(200);
      silent = false;
      expect(kinds(await sendAll(transport, ids(200)))).toEqual({ answered: 200 });
    },
  );

  isolated(
    "ignores an answer that comes after its request was given up",
    async ({ expect, fixture: { serve, connect } }) => {
      const late: Array<() => void> = [];
      const server = await serve({
        settings: [],
        onRequest(peer, { streamId, body }) {
          if (body === "a") late.push(() => peer.headers(streamId, [[":status", "200"]], true));
          else peer.answer(streamId);
        },
      });
      const transport = connect(server, { requestTimeoutMs: 2_000, connections: 1 });
      await warm(transport);
      expect(await transport.send(push("a"))).toMatchObject({ kind: "unknown" });
      for (const answer of late) answer();
      expect(await transport.send(push("b"))).toMatchObject({ kind: "answered" });
    },
  );

  isolated(
    "closes a connection that does not answer PING either, and opens another",
    async ({ expect, fixture: { serve, connect } }) => {
      const server = await serve({
        settings: [],
        alive: false,
        onRequest(peer, { streamId, body }) {
          if (peer.number > 1 || body === "warm") peer.answer(streamId);
        },
      });
      const transport = connect(server, { requestTimeoutMs: 2_000, pingTimeoutMs: 200, connections: 1 });
      await warm(transport);
      expect(await transport.send(push("a"))).toMatchObject({ kind: "unknown" });
      await expect.poll(async () => (await transport.send(push("b"))).kind, { timeout: 20_000 }).toBe("answered");
      await expect.poll(() => server.peers[0]?.socket.destroyed).toBe(true);
      expect(server.peers.length).toBeGreaterThan(1);
    },
  );

  isolated("notices on an idle connection that the peer is gone", async ({ expect, fixture: { serve, connect } }) => {
    const server = await serve({
      settings: [],
      alive: false,
      onRequest: (peer, { streamId }) => peer.answer(streamId),
    });
    const transport = connect(server, { pingIntervalMs: 50, pingTimeoutMs: 100 });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "answered" });
    await expect.poll(() => server.peers[0]?.socket.destroyed, { timeout: 20_000 }).toBe(true);
  });

  isolated(
    "closes a connection that carried nothing for long, and opens another when there is work",
    async ({ expect, fixture: { serve, connect } }) => {
      const server = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) });
      const transport = connect(server, { pingIntervalMs: 20, idleTimeoutMs: 40 });
      expect(await transport.send(push("a"))).toMatchObject({ kind: "answered" });
      await expect.poll(() => server.connected()).toBe(0);
      expect(await transport.send(push("b"))).toMatchObject({ kind: "answered" });
    },
  );

  isolated("a connection that takes long to be opened is not idle", async ({ expect, fixture: { serve, connect } }) => {
    const slow = { SNICallback: (_: string, done: (error: null) => void) => void setTimeout(done, 200, null) };
    const server = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) }, slow);
    const transport = connect(server, { pingIntervalMs: 20, idleTimeoutMs: 40 });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "answered" });
  });
});
