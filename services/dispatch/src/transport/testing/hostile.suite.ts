import { describe, expect, it } from "vitest";
import { Code, Flag, FrameType, fieldBlock, frame, uint32 } from "./frames.ts";
import type { StrictPeer } from "./strict-peer.ts";
import { push, type SuiteBench } from "./suite-bench.ts";

/** Repeatable chance, so that a failure can be run again. */
function createDice(seed: number) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return {
    below: (bound: number) => Math.floor(next() * bound),
    bytes: (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(next() * 256))),
  };
}

type Dice = ReturnType<typeof createDice>;

/** Answers that break a stream, a connection, a decoder, or nothing at all. */
const mangled: ReadonlyArray<(peer: StrictPeer, id: number, dice: Dice) => void> = [
  (peer, id, dice) => peer.headers(id, [[":status", String(dice.below(1_000))]], true),
  (peer, id, dice) => peer.answer(id, 400, dice.bytes(1 + dice.below(200)).toString("latin1")),
  (peer, id, dice) => {
    peer.headers(id, [[":status", "400"]]);
    peer.data(id, dice.bytes(1 + dice.below(300)), true);
  },
  (peer, id) => peer.answer(id, 400, '{"reason":'),
  (peer, id) => peer.answer(id, 400, "[".repeat(5_000)),
  (peer, id) => peer.answer(id, 410, '{"reason":"Unregistered","timestamp":"yesterday"}'),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        ["content-length", "99"],
      ],
      true,
    ),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        [":status", "410"],
      ],
      true,
    ),
  (peer, id) => peer.headers(id, [["constructor", "x"]], true),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        ["__proto__", "x"],
        ["constructor", "y"],
      ],
      true,
    ),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "429"],
        ["retry-after", "-1e9"],
      ],
      true,
    ),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "503"],
        ["retry-after", "x".repeat(3_000)],
      ],
      true,
    ),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        ["a b", "c"],
      ],
      true,
    ),
  (peer, id) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        ["connection", "close"],
      ],
      true,
    ),
  (peer, id, dice) =>
    peer.headers(
      id,
      [
        [":status", "200"],
        ["x", dice.bytes(20)],
      ],
      true,
    ),
  (peer, id, dice) => peer.reset(id, dice.below(20)),
  (peer, id) => peer.data(id, "no headers", true),
  (peer, id) => {
    peer.headers(id, [[":status", "200"]], true);
    peer.headers(id, [[":status", "410"]], true);
  },
  (peer, id) => {
    peer.headers(id, [[":status", "200"]]);
    peer.reset(id, Code.noError);
  },
];

/** Worse: these end the connection, so they come once in a while. */
const fatal: typeof mangled = [
  (peer, _id, dice) => peer.raw(dice.bytes(1 + dice.below(400))),
  (peer, id, dice) => peer.raw(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, id, dice.bytes(30))),
  (peer, id) => peer.raw(frame(FrameType.headers, Flag.endHeaders, id + 1_000, fieldBlock([[":status", "200"]]))),
  (peer, id) => peer.raw(frame(FrameType.pushPromise, Flag.endHeaders, id, uint32(2))),
  (peer, id) => peer.raw(frame(FrameType.windowUpdate, 0, id, uint32(0))),
  (peer) => peer.raw(frame(FrameType.windowUpdate, 0, 0, uint32(0x7fffffff))),
  (peer) => peer.raw(frame(FrameType.settings, 0, 0, Buffer.alloc(5))),
  (peer) => peer.raw(frame(FrameType.ping, 0, 0, Buffer.alloc(3))),
  (peer) => peer.raw(Buffer.of(0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1)),
  (peer, id) => peer.raw(frame(FrameType.data, Flag.padded, id, Buffer.of(200))),
  (peer, id) => peer.raw(frame(FrameType.continuation, Flag.endHeaders, id, Buffer.alloc(4))),
  (peer) => peer.raw(frame(FrameType.goaway, 0, 0, Buffer.alloc(3))),
  (peer) => peer.goaway(0x7fffffff, Code.internalError, "\u0000".repeat(200)),
  (peer) => peer.cut(),
];

/** A peer that is broken or means harm: every request is classified and the transport lives on. */
export function hostileSuite({ serve, connect }: SuiteBench): void {
  describe("mangled answers", () => {
    it("classifies 10,000, keeps its memory, and serves the next request", async () => {
      const dice = createDice(20_260_101);
      let good = false;
      const server = await serve({
        settings: [],
        onRequest(peer, { streamId }) {
          if (good) return peer.answer(streamId);
          const kind = dice.below(200) === 0 ? fatal : mangled;
          kind[dice.below(kind.length)]?.(peer, streamId, dice);
        },
      });
      const transport = connect(server, { requestTimeoutMs: 1_000, pingTimeoutMs: 500 });
      const seen: Record<string, number> = {};
      const round = async () => {
        const answers = await Promise.all(
          Array.from({ length: 250 }, (_, index) => transport.send(push(`m-${index}`))),
        );
        for (const { kind } of answers) seen[kind] = (seen[kind] ?? 0) + 1;
      };
      for (let done = 0; done < 40; done++) await round();
      expect(Object.values(seen).reduce((sum, count) => sum + count, 0)).toBe(10_000);
      expect(seen.answered).toBeGreaterThan(1_000);
      expect(seen.unknown).toBeGreaterThan(1_000);
      good = true;
      await expect.poll(async () => (await transport.send(push("good"))).kind, { timeout: 15_000 }).toBe("answered");
    }, 60_000);
  });

  describe("requests that HTTP/2 cannot carry", () => {
    it.each([
      ["a line break in a value", { headers: { "apns-topic": "a\r\nx: y" } }],
      ["a NUL in a value", { headers: { "apns-topic": "a\0x\0y" } }],
      ["a value that is not ASCII", { headers: { "apns-topic": "żółw" } }],
      ["a name in capitals", { headers: { "Apns-Topic": "a" } }],
      ["a pseudo header", { headers: { ":status": "200" } }],
      ["a header of the connection", { headers: { connection: "close" } }],
      ["a path with a space", { path: "/3/device/a b" }],
      ["a path with a NUL", { path: "/3/device/a\0:authority\0evil" }],
      ["a path that is not one", { path: "https://elsewhere.example/" }],
    ])("refuses %s, and nothing else suffers", async (_, part) => {
      const server = await serve({ settings: [], onRequest: (peer, { streamId }) => peer.answer(streamId) });
      const transport = connect(server);
      const [bad, good] = await Promise.allSettled([
        transport.send({ ...push("bad"), ...part }),
        transport.send(push("good")),
      ]);
      expect(bad).toMatchObject({ status: "rejected", reason: expect.any(TypeError) });
      expect(good).toMatchObject({ status: "fulfilled", value: { kind: "answered" } });
      expect(server.peers[0]?.opened).toBe(1);
    });
  });
}
