import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { push } from "../../test/fixture.ts";
import { type Frame, FrameType, takeFrames } from "../../test/frames.ts";
import { createOutbound, createOutput } from "./outbound.ts";
import { createFloodGuard } from "./peer-limits.ts";
import { Code, Flag, type PendingRequest, type Stream } from "./wire.ts";

/** Takes requests and collects the frames written to a fake socket. */
function createWriter() {
  const written: Buffer[] = [];
  const socket = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk);
      done();
    },
  });
  const streams = new Map<number, Stream>();
  const output = createOutput(socket, () => {});
  const outbound = createOutbound({ output, guard: createFloodGuard(), authority: "localhost", streams });
  return {
    outbound,
    streams,
    send(body: string | Uint8Array): Stream {
      const pending: PendingRequest = {
        request: { ...push("a"), body },
        order: 0,
        resolve: () => {},
        done: false,
        resends: 0,
        connection: undefined,
        streamId: 0,
        group: undefined,
      };
      const stream = outbound.send(pending);
      streams.set(stream.id, stream);
      return stream;
    },
    /** The frames written since the last call. */
    frames(): Frame[] {
      output.flush();
      const frames: Frame[] = [];
      takeFrames(Buffer.concat(written.splice(0)), (next) => frames.push(next));
      return frames;
    },
  };
}

const dataSizes = (frames: Frame[]) =>
  frames.filter(({ type }) => type === FrameType.data).map(({ payload }) => payload.length);

test("waits while a smaller initial window makes a stream's window negative, and continues once it is positive", () => {
  const { outbound, send, frames } = createWriter();
  outbound.setInitialWindow(100);
  const stream = send("x".repeat(300));
  expect(dataSizes(frames())).toEqual([100]);
  outbound.setInitialWindow(40);
  expect(stream.window).toBe(-60);
  for (const by of [50, 10]) {
    outbound.widen(stream, by);
    outbound.resume();
    expect(frames()).toEqual([]);
  }
  outbound.widen(stream, 5);
  outbound.resume();
  expect(dataSizes(frames())).toEqual([5]);
  outbound.setInitialWindow(1_000);
  outbound.resume();
  const last = frames();
  expect(dataSizes(last)).toEqual([195]);
  expect(last[0]?.flags).toBe(Flag.endStream);
});

test("shares the connection's window in the order in which requests came", () => {
  const { outbound, send, frames } = createWriter();
  const bodies = Array.from({ length: 5 }, () => send("x".repeat(16_000)));
  expect(dataSizes(frames())).toEqual([16_000, 16_000, 16_000, 16_000, 1_535]);
  expect(outbound.full()).toBe(true);
  send("y".repeat(10));
  expect(dataSizes(frames())).toEqual([]);
  outbound.widen(undefined, 14_470);
  outbound.resume();
  expect(frames().map(({ streamId, payload }) => [streamId, payload.length])).toEqual([
    [bodies[4]?.id, 14_465],
    [11, 5],
  ]);
});

test("drops the body of a cancelled request", () => {
  const { outbound, send, frames } = createWriter();
  outbound.setInitialWindow(0);
  const stream = send("x");
  outbound.forget(stream);
  outbound.widen(stream, 10);
  outbound.resume();
  expect(dataSizes(frames())).toEqual([]);
});

test.each<[string, (outbound: ReturnType<typeof createOutbound>, stream: Stream) => void]>([
  ["of the connection", (outbound) => outbound.widen(undefined, 0x7fffffff)],
  ["of a stream", (outbound, stream) => outbound.widen(stream, 0x7fffffff)],
  [
    "of a stream, by a setting",
    (outbound, stream) => [outbound.widen(stream, 1), outbound.setInitialWindow(0x7fffffff)],
  ],
  ["of streams to come", (outbound) => outbound.setInitialWindow(0x80000000)],
])("refuses a window beyond 2^31 - 1: %s", (_, grow) => {
  const { outbound, send } = createWriter();
  const stream = send("");
  expect(() => grow(outbound, stream)).toThrow(expect.objectContaining({ code: Code.flowControlError }));
});

test("cuts long fields and long bodies into frames of 16 KiB, and tells each frame's end", () => {
  const { outbound, send, frames } = createWriter();
  outbound.setInitialWindow(60_000);
  send(new Uint8Array(40_000));
  expect(
    frames()
      .map(({ type, flags, payload }) => [type, flags, payload.length])
      .slice(1),
  ).toEqual([
    [FrameType.data, 0, 16_384],
    [FrameType.data, 0, 16_384],
    [FrameType.data, Flag.endStream, 7_232],
  ]);
  send("");
  expect(frames().map(({ type, flags }) => [type, flags])).toEqual([
    [FrameType.headers, Flag.endHeaders | Flag.endStream],
  ]);
});
