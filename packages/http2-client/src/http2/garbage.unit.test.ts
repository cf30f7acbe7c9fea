import fc from "fast-check";
import { expect, test } from "vitest";
import { ids, push, sendAll } from "../../test/fixture.ts";
import { FrameType, fieldBlock, frame, uint32 } from "../../test/frames.ts";
import { startStrictServer } from "../../test/strict-server.ts";
import { createHttp2Transport } from "../http2-transport.ts";

const fields = fieldBlock([
  [":status", "200"],
  ["apns-id", "A"],
]);
const bytes = fc.uint8Array({ maxLength: 60 });
const payload = fc.oneof(
  bytes,
  fc.constantFrom(0, 3, 4, 5, 6, 8, 12).map((length) => new Uint8Array(length)),
  fc.constant(fields),
  bytes.map((tail) => Buffer.concat([fields, tail])),
);
const ourStream = fc.constantFrom(1, 3, 5, 7);
/** Frames that a peer may send at this point of a connection. */
const rightFrame = fc.oneof(
  fc.tuple(fc.constantFrom(4, 5), ourStream).map(([flags, id]) => frame(FrameType.headers, flags, id, fields)),
  fc.tuple(fc.constantFrom(0, 1), ourStream, bytes).map(([flags, id, body]) => frame(FrameType.data, flags, id, body)),
  fc.tuple(ourStream, fc.nat({ max: 14 })).map(([id, code]) => frame(FrameType.rstStream, 0, id, uint32(code))),
  fc.tuple(ourStream, fc.nat({ max: 1 })).map(([id, code]) => frame(FrameType.goaway, 0, 0, uint32(id, code))),
);
const anyFrame = fc
  .record({
    type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...Object.values(FrameType)) }, fc.nat({ max: 255 })),
    flags: fc.oneof(fc.constantFrom(0, 1, 4, 5, 8, 13, 45), fc.nat({ max: 255 })),
    streamId: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(0, 1, 3, 5, 7) }, fc.nat({ max: 0x7fffffff })),
    payload,
  })
  .map((each) => frame(each.type, each.flags, each.streamId, each.payload));
const garbage = fc.array(fc.oneof({ weight: 9, arbitrary: rightFrame }, { weight: 5, arbitrary: anyFrame }, bytes), {
  maxLength: 12,
});

test("whatever a peer sends, every request gets an answer and nothing is thrown", { timeout: 60_000 }, async () => {
  let parts: Uint8Array[] = [];
  const server = await startStrictServer({
    settings: [],
    onRequest(peer, { streamId, body }) {
      if (body === "good") return peer.answer(streamId);
      if (streamId !== 7) return;
      peer.raw(...parts);
      peer.socket.end();
    },
  });
  const seen = new Set<string>();
  const run = fc.asyncProperty(garbage, async (next) => {
    parts = next;
    // The requests' deadline is after the test's, so a forgotten request fails the test.
    const transport = createHttp2Transport({ ...server, connections: 1, maxResends: 0, requestTimeoutMs: 600_000 });
    try {
      for (const { kind } of await sendAll(transport, ids(4))) seen.add(kind);
      // The next request may still hit the closing connection.
      await expect.poll(async () => (await transport.send(push("good"))).kind, { timeout: 10_000 }).toBe("answered");
    } finally {
      await transport.close();
    }
  });
  try {
    await fc.assert(run, { numRuns: 150 });
  } finally {
    await server.close();
  }
  // The garbage must reach the answers too, not just end every connection at its first frame: each kind is the result of one run in six.
  expect([...seen].sort()).toEqual(["answered", "unknown", "unprocessed"]);
});
