import fc from "fast-check";
import { expect, test } from "vitest";
import { frame } from "../../test/frames.ts";
import { createFrameReader } from "./frame-reader.ts";
import { Code } from "./wire.ts";

type Seen = { type: number; flags: number; streamId: number; payload: string };

function createReader() {
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
      const { seen, read } = createReader();
      const bytes = Buffer.concat(frames.map((each) => frame(each.type, each.flags, each.streamId, each.payload)));
      let at = 0;
      for (const cut of cuts) {
        // The memory of a chunk may be used again once it was read.
        const chunk = Buffer.from(bytes.subarray(at, at + cut));
        read(chunk);
        chunk.fill(0xff);
        at += cut;
      }
      read(bytes.subarray(at));
      expect(seen).toEqual(frames.map((each) => ({ ...each, payload: Buffer.from(each.payload).toString("hex") })));
    }),
    { numRuns: 300 },
  );
});

test("ignores the reserved bit of a stream's id", () => {
  const { seen, read } = createReader();
  read(frame(0xaa, 0, 0x80000005));
  expect(seen).toMatchObject([{ streamId: 5 }]);
});

test.each([1, 4, 9])("refuses a frame that is too long by its head, which came in parts of %i", (part) => {
  const { read } = createReader();
  const head = Buffer.of(0, 0x40, 1, 0, 0, 0, 0, 0, 1);
  expect(() => {
    for (let at = 0; at < head.length; at += part) read(head.subarray(at, at + part));
  }).toThrow(expect.objectContaining({ code: Code.frameSizeError }));
});
