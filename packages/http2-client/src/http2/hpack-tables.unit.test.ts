import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeHuffman, huffmanCodes, maxHuffmanDecoded } from "./hpack-tables.ts";

const codes = new Map(huffmanCodes().map(({ symbol, bits, code }) => [symbol, code.toString(2).padStart(bits, "0")]));

function encode(plain: Uint8Array): Buffer {
  const bits = [...plain].map((byte) => codes.get(byte)).join("");
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from((padded.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

function decode(coded: Uint8Array): Buffer | undefined {
  const out = Buffer.alloc(maxHuffmanDecoded(coded.length));
  const length = decodeHuffman(coded, 0, coded.length, out);
  return length < 0 ? undefined : out.subarray(0, length);
}

test("has the codes of RFC 7541, appendix B", () => {
  expect([48, 97, 88, 90, 0, 10, 256].map((symbol) => codes.get(symbol))).toEqual([
    "00000",
    "00011",
    "11111100",
    "11111101",
    "1111111111000",
    "111111111111111111111111111100",
    "111111111111111111111111111111",
  ]);
});

test("reads back what was coded, every byte there is", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (plain) => {
      expect(decode(encode(plain))).toEqual(Buffer.from(plain));
    }),
    { numRuns: 1_000 },
  );
});

test("refuses what is cut inside a code, and never writes beyond its bound", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (coded) => {
      const read = decode(coded);
      if (read !== undefined) expect(encode(read)).toEqual(Buffer.from(coded));
    }),
    { numRuns: 1_000 },
  );
});
