import { Code, Flag, FrameType, fieldBlock, frame, uint32 } from "./frames.ts";
import type { StrictPeer } from "./strict-peer.ts";

/** A seeded random generator, so that a failure can be reproduced. */
export function createDice(seed: number) {
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
export const mangled: ReadonlyArray<(peer: StrictPeer, id: number, dice: Dice) => void> = [
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

/** These end the connection, so tests use them rarely. */
export const fatal: typeof mangled = [
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
