import { describe, expect, it } from "vitest";
import { createFixture, ids, kinds, push, sendAll } from "./fixture.ts";
import { Code, FrameType, fieldBlock, frame } from "./frames.ts";
import type { StrictPeer } from "./strict-peer.ts";

type Answer = (peer: StrictPeer, id: number, body: string) => void;

/** Answers of a peer, well formed or malformed. */
const { serve, connect } = createFixture();

const answering = async (answer: Answer) =>
  connect(await serve({ settings: [], onRequest: (peer, { streamId, body }) => answer(peer, streamId, body) }), {
    maxBodyBytes: 10_000,
  });

describe("answers", () => {
  it("gives status, headers by lower-case name, and body", async () => {
    const transport = await answering((peer, id) =>
      peer.answer(id, 429, '{"reason":"TooManyRequests"}', [
        ["retry-after", "30"],
        ["apns-id", "A-1"],
      ]),
    );
    const answer = await transport.send(push("a"));
    expect(answer).toMatchObject({ kind: "answered", status: 429, body: '{"reason":"TooManyRequests"}' });
    expect(answer.kind === "answered" && answer.headers["retry-after"]).toBe("30");
    expect(answer.kind === "answered" && answer.headers["apns-id"]).toBe("A-1");
  });

  it("accepts an answer without a body, whether its headers or an empty frame end it", async () => {
    const transport = await answering((peer, id, body) => {
      if (body === "headers") return peer.answer(id, 200);
      peer.headers(id, [[":status", "410"]]);
      peer.data(id, "", true);
    });
    expect(await transport.send(push("headers"))).toMatchObject({ kind: "answered", status: 200, body: "" });
    expect(await transport.send(push("frame"))).toMatchObject({ kind: "answered", status: 410, body: "" });
  });

  it("joins characters that are split across two frames", async () => {
    const text = Buffer.from("żółw 🐢");
    const transport = await answering((peer, id) => {
      peer.headers(id, [[":status", "200"]]);
      for (const byte of text) peer.data(id, Buffer.of(byte));
      peer.data(id, "", true);
    });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "answered", body: "żółw 🐢" });
  });

  it("replaces bytes that are not UTF-8", async () => {
    const transport = await answering((peer, id) => {
      peer.headers(id, [[":status", "400"]]);
      peer.data(id, Buffer.of(0x7b, 0xff, 0xfe, 0x7d), true);
    });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "answered", status: 400, body: "{��}" });
  });

  it("truncates a huge body, cancels the rest, and keeps using the connection", async () => {
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        if (body === "small") return peer.answer(streamId);
        peer.headers(streamId, [[":status", "400"]]);
        peer.data(streamId, "x".repeat(50_000)); // never followed by END_STREAM
      },
    });
    const transport = connect(server, { maxBodyBytes: 10_000 });
    const answer = await transport.send(push("huge"));
    expect(answer).toMatchObject({ kind: "answered", status: 400, body: "x".repeat(10_000) });
    expect(await transport.send(push("small"))).toMatchObject({ kind: "answered", status: 200 });
    expect(server.peers).toHaveLength(1);
    expect(server.peers[0]?.resets).toEqual([{ streamId: 1, code: Code.cancel }]);
  });

  it("stays usable over more body bytes than a connection's window holds", async () => {
    const transport = await answering((peer, id) => peer.answer(id, 400, "x".repeat(5_000)));
    for (let round = 0; round < 10; round++) {
      const answers = await sendAll(transport, ids(10));
      expect(kinds(answers)).toEqual({ answered: 10 });
    }
  });

  it("waits for the answer behind informational ones, and ignores trailers", async () => {
    const transport = await answering((peer, id) => {
      peer.headers(id, [
        [":status", "103"],
        ["link", "</a>"],
      ]);
      peer.headers(id, [
        [":status", "200"],
        ["apns-id", "B"],
      ]);
      peer.data(id, "body");
      peer.headers(id, [["x-checksum", "1"]], true);
    });
    expect(await transport.send(push("a"))).toMatchObject({ kind: "answered", status: 200, body: "body" });
  });

  it("reads padded frames and field blocks in several frames", async () => {
    const transport = await answering((peer, id) => {
      const block = fieldBlock([
        [":status", "200"],
        ["apns-id", "C".repeat(300)],
      ]);
      peer.raw(
        frame(FrameType.headers, 0, id, block.subarray(0, 40)),
        frame(FrameType.continuation, 0, id, block.subarray(40, 100)),
        frame(FrameType.continuation, 4, id, block.subarray(100)),
        frame(FrameType.data, 8, id, Buffer.from("\x05body\0\0\0\0\0")),
        frame(FrameType.data, 8 | 1, id, Buffer.from("\x02\0\0")),
      );
      peer.ended(id);
    });
    expect(await transport.send(push("a"))).toMatchObject({
      kind: "answered",
      body: "body",
      headers: { "apns-id": "C".repeat(300) },
    });
  });

  it("ignores frames it does not know, and answers PING and SETTINGS", async () => {
    const server = await serve({
      settings: [[0x0a0a, 7]],
      onRequest(peer, { streamId }) {
        peer.raw(frame(0x0b, 0xff, streamId, Buffer.from("grease")), frame(0xfa, 0, 0, Buffer.from("grease")));
        peer.raw(frame(FrameType.priority, 0, streamId, Buffer.alloc(5)));
        peer.ping();
        peer.settings([0x1a1a, 1]);
        peer.answer(streamId);
      },
    });
    const transport = connect(server);
    expect(kinds(await sendAll(transport, ids(3)))).toEqual({ answered: 3 });
    await expect.poll(() => server.peers[0]?.pingsAcked).toBe(3);
    await expect.poll(() => server.peers[0]?.settingsAcked).toBe(4);
  });

  it("gives each of many requests its own answer", async () => {
    const late: Array<() => void> = [];
    const server = await serve({
      settings: [],
      onRequest(peer, { streamId, body }) {
        late.push(() => peer.answer(streamId, 200, body));
        if (late.length < 20) return;
        for (const answer of late.splice(0).reverse()) answer();
      },
    });
    const transport = connect(server, { connections: 1, maxInFlight: 500 });
    const bodies = ids(1_000);
    const answers = await sendAll(transport, bodies);
    expect(answers.map((answer) => answer.kind === "answered" && answer.body)).toEqual(bodies);
  });

  it.each<[string, Answer]>([
    ["has no status", (peer, id) => peer.headers(id, [["apns-id", "x"]], true)],
    ["has a status that is no number", (peer, id) => peer.headers(id, [[":status", "abc"]], true)],
    [
      "has a pseudo header behind others",
      (peer, id) =>
        peer.headers(
          id,
          [
            ["a", "b"],
            [":status", "200"],
          ],
          true,
        ),
    ],
    [
      "has a header name in capitals",
      (peer, id) =>
        peer.headers(
          id,
          [
            [":status", "200"],
            ["Apns-Id", "x"],
          ],
          true,
        ),
    ],
    ["begins with its body", (peer, id) => peer.data(id, "body", true)],
  ])("calls an answer unknown that %s", async (_, answer) => {
    const transport = await answering(answer);
    expect(await transport.send(push("a"))).toMatchObject({ kind: "unknown" });
  });
});
