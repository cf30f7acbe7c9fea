import fc from "fast-check";
import { expect, test } from "vitest";
import { Flag, FrameType, fieldBlock, frame, Setting, settingsPayload, uint32 } from "../../test/frames.ts";
import { createFrameReader, createInbound, type InboundEvents } from "./inbound.ts";
import { createFloodGuard } from "./peer-limits.ts";
import { Code, ConnectionError } from "./wire.ts";

const lastOpened = 5;
const ok = fieldBlock([[":status", "200"]]);
const hello = frame(FrameType.settings, 0, 0);

/** Reads for a connection that has opened streams 1, 3 and 5, and records every event. */
function createReader() {
  const told: string[] = [];
  const tell =
    (what: string) =>
    (...values: unknown[]) => {
      told.push([what, ...values.filter((value) => !(value instanceof Uint8Array))].join(" "));
    };
  const events: InboundEvents = {
    setting: tell("setting"),
    settingsRead: tell("settings"),
    pinged: tell("ping"),
    pingAnswered: tell("pong"),
    wentAway: tell("goaway"),
    widened: tell("widened"),
    reset: tell("reset"),
    fields: (streamId, { count }, ends) => tell("fields")(streamId, count, ends),
    data: (streamId, windowBytes, bytes, start, end, ends) =>
      tell("data")(streamId, windowBytes, bytes.toString("latin1", start, end), ends),
    streamBroken: tell("broken"),
    wasOpened: (streamId) => streamId % 2 === 1 && streamId <= lastOpened,
  };
  const read = createInbound(
    events,
    createFloodGuard(() => 0),
  );
  return { told, read };
}

test("strips padding and priority, and joins field blocks", () => {
  const { told, read } = createReader();
  read(frame(FrameType.settings, 0, 0, settingsPayload([[Setting.maxStreams, 7]])));
  read(frame(FrameType.settings, Flag.ack, 0));
  read(
    frame(
      FrameType.headers,
      Flag.padded | Flag.priority | Flag.endHeaders,
      1,
      Buffer.concat([Buffer.of(2), Buffer.alloc(5), ok, Buffer.alloc(2)]),
    ),
  );
  read(frame(FrameType.headers, Flag.endStream, 3, ok.subarray(0, 3)));
  read(frame(FrameType.continuation, 0, 3));
  read(frame(FrameType.continuation, Flag.endHeaders, 3, ok.subarray(3)));
  read(frame(FrameType.data, Flag.padded | Flag.endStream, 1, Buffer.from("\x03body\0\0\0")));
  read(frame(FrameType.ping, 0, 0, Buffer.alloc(8)));
  read(frame(FrameType.ping, Flag.ack, 0, Buffer.alloc(8)));
  read(frame(FrameType.rstStream, 0, 5, uint32(Code.refusedStream)));
  read(frame(FrameType.windowUpdate, 0, 0, uint32(0x80000009)));
  read(frame(FrameType.windowUpdate, 0, 5, uint32(0)));
  read(frame(FrameType.priority, 0, 7, Buffer.alloc(5)));
  read(frame(FrameType.priority, 0, 5, Buffer.alloc(4)));
  read(frame(0xbb, 0xff, 99, Buffer.alloc(3)));
  read(frame(FrameType.goaway, 0, 0, uint32(0x80000003, Code.noError)));
  expect(told).toEqual([
    "setting 3 7",
    "settings",
    "fields 1 1 false",
    "fields 3 1 true",
    "data 1 8 body true",
    "ping",
    "pong",
    "reset 5 7",
    "widened 0 9",
    "broken 5 1 WINDOW_UPDATE by nothing",
    "broken 5 6 PRIORITY of a wrong size",
    "goaway 3 0",
  ]);
});

test.each<[string, number, Buffer]>([
  ["DATA on the connection", Code.protocolError, frame(FrameType.data, 0, 0)],
  ["DATA for a stream that was never opened", Code.protocolError, frame(FrameType.data, 0, 7)],
  ["DATA on a stream of the peer's", Code.protocolError, frame(FrameType.data, 0, 2)],
  ["DATA whose padding has no length", Code.frameSizeError, frame(FrameType.data, Flag.padded, 1)],
  ["DATA with more padding than frame", Code.protocolError, frame(FrameType.data, Flag.padded, 1, Buffer.of(1))],
  ["HEADERS on the connection", Code.protocolError, frame(FrameType.headers, Flag.endHeaders, 0, ok)],
  ["HEADERS for a stream that was never opened", Code.protocolError, frame(FrameType.headers, 4, 7, ok)],
  ["HEADERS without a whole priority", Code.protocolError, frame(FrameType.headers, 4 | 32, 1, Buffer.alloc(4))],
  ["HEADERS with more padding than frame", Code.protocolError, frame(FrameType.headers, 4 | 8, 1, Buffer.of(9, 0x88))],
  ["HEADERS that cannot be decompressed", Code.compressionError, frame(FrameType.headers, 4, 1, Buffer.of(0xff))],
  ["CONTINUATION of nothing", Code.protocolError, frame(FrameType.continuation, Flag.endHeaders, 1)],
  [
    "another frame inside a field block",
    Code.protocolError,
    Buffer.concat([frame(FrameType.headers, 0, 1, ok), frame(FrameType.ping, 0, 0, Buffer.alloc(8))]),
  ],
  [
    "CONTINUATION of another stream",
    Code.protocolError,
    Buffer.concat([frame(FrameType.headers, 0, 1, ok), frame(FrameType.continuation, Flag.endHeaders, 3)]),
  ],
  [
    "a field block that does not end",
    Code.enhanceYourCalm,
    Buffer.concat([
      frame(FrameType.headers, 0, 1, ok),
      ...Array.from({ length: 5 }, () => frame(FrameType.continuation, 0, 1, Buffer.alloc(16_384))),
    ]),
  ],
  ["PRIORITY on the connection", Code.protocolError, frame(FrameType.priority, 0, 0, Buffer.alloc(5))],
  ["RST_STREAM on the connection", Code.protocolError, frame(FrameType.rstStream, 0, 0, uint32(0))],
  ["RST_STREAM for a stream that was never opened", Code.protocolError, frame(FrameType.rstStream, 0, 7, uint32(0))],
  ["RST_STREAM of a wrong size", Code.frameSizeError, frame(FrameType.rstStream, 0, 1, Buffer.alloc(3))],
  ["SETTINGS on a stream", Code.protocolError, frame(FrameType.settings, 0, 1)],
  ["SETTINGS of a wrong size", Code.frameSizeError, frame(FrameType.settings, 0, 0, Buffer.alloc(5))],
  ["an acknowledgement that holds SETTINGS", Code.frameSizeError, frame(4, Flag.ack, 0, Buffer.alloc(6))],
  ["a server that is pushed to", Code.protocolError, frame(4, 0, 0, settingsPayload([[Setting.enablePush, 1]]))],
  ["frames too small", Code.protocolError, frame(4, 0, 0, settingsPayload([[Setting.maxFrameSize, 16_383]]))],
  ["frames too large", Code.protocolError, frame(4, 0, 0, settingsPayload([[Setting.maxFrameSize, 0x1000000]]))],
  ["PUSH_PROMISE", Code.protocolError, frame(FrameType.pushPromise, Flag.endHeaders, 1, uint32(2))],
  ["PING on a stream", Code.protocolError, frame(FrameType.ping, 0, 1, Buffer.alloc(8))],
  ["PING of a wrong size", Code.frameSizeError, frame(FrameType.ping, 0, 0, Buffer.alloc(7))],
  ["GOAWAY on a stream", Code.protocolError, frame(FrameType.goaway, 0, 1, Buffer.alloc(8))],
  ["GOAWAY of a wrong size", Code.frameSizeError, frame(FrameType.goaway, 0, 0, Buffer.alloc(7))],
  ["WINDOW_UPDATE of a wrong size", Code.frameSizeError, frame(FrameType.windowUpdate, 0, 1, Buffer.alloc(5))],
  ["WINDOW_UPDATE by nothing", Code.protocolError, frame(FrameType.windowUpdate, 0, 0, uint32(0))],
  ["WINDOW_UPDATE for a stream that was never opened", Code.protocolError, frame(8, 0, 7, uint32(1))],
  ["a frame longer than 16 KiB", Code.frameSizeError, frame(0xbb, 0, 0, Buffer.alloc(16_385))],
])("ends the connection for %s", (_, code, bytes) => {
  const { read } = createReader();
  read(hello);
  expect(() => read(bytes)).toThrow(ConnectionError);
  const again = createReader();
  again.read(hello);
  expect(() => again.read(bytes)).toThrow(expect.objectContaining({ code }));
});

test.each([
  ["PING", frame(FrameType.ping, 0, 0, Buffer.alloc(8))],
  ["an acknowledgement", frame(FrameType.settings, Flag.ack, 0)],
])("does not take %s for a beginning", (_, bytes) => {
  expect(() => createReader().read(bytes)).toThrow(expect.objectContaining({ code: Code.protocolError }));
});

test.each<[string, number, Buffer]>([
  ["PING", 10_001, frame(FrameType.ping, 0, 0, Buffer.alloc(8))],
  ["PRIORITY", 10_001, frame(FrameType.priority, 0, 1, Buffer.alloc(5))],
  ["unknown frames", 10_001, frame(0xbb, 0, 0)],
  ["DATA that is empty", 10_001, frame(FrameType.data, 0, 1)],
  ["settings, thousands in a frame", 5, frame(4, 0, 0, Buffer.alloc(2_730 * 6, uint32(0x00040000, 0x00010000)))],
])("ends the connection for a flood of %s", (_, count, bytes) => {
  const { read } = createReader();
  read(hello);
  expect(() => {
    for (let at = 0; at < count; at++) read(bytes);
  }).toThrow(expect.objectContaining({ code: Code.enhanceYourCalm }));
});

type Seen = { type: number; flags: number; streamId: number; payload: string };

function frameReader() {
  const seen: Seen[] = [];
  const read = createFrameReader((type, flags, streamId, bytes, start, end) => {
    seen.push({ type, flags, streamId, payload: bytes.toString("hex", start, end) });
  });
  return { seen, read };
}

test("reads the same frames however the bytes are cut", () => {
  const anyFrame = fc.record({
    type: fc.integer({ min: 0, max: 255 }),
    flags: fc.integer({ min: 0, max: 255 }),
    streamId: fc.integer({ min: 0, max: 0x7fffffff }),
    payload: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(new Uint8Array(16_384))),
  });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 30 })), (frames, cuts) => {
      const { seen, read } = frameReader();
      const bytes = Buffer.concat(frames.map((each) => frame(each.type, each.flags, each.streamId, each.payload)));
      let at = 0;
      for (const cut of cuts) {
        // The caller may reuse a chunk's memory after `read` returns.
        const chunk = Buffer.from(bytes.subarray(at, at + cut));
        read(chunk);
        chunk.fill(0xff);
        at += cut;
      }
      read(bytes.subarray(at));
      expect(seen).toEqual(frames.map((each) => ({ ...each, payload: Buffer.from(each.payload).toString("hex") })));
    }),
    { numRuns: 100 },
  );
});

test("ignores the reserved bit of a stream's id", () => {
  const { seen, read } = frameReader();
  read(frame(0xaa, 0, 0x80000005));
  expect(seen).toMatchObject([{ streamId: 5 }]);
});

test.each([1, 4, 9])("refuses a frame that is too long by its head, which came in parts of %i", (part) => {
  const { read } = frameReader();
  const head = Buffer.of(0, 0x40, 1, 0, 0, 0, 0, 0, 1);
  expect(() => {
    for (let at = 0; at < head.length; at += part) read(head.subarray(at, at + part));
  }).toThrow(expect.objectContaining({ code: Code.frameSizeError }));
});
