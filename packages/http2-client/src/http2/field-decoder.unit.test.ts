import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFieldDecoder } from "./field-decoder.ts";
import { Code, ConnectionError } from "./wire.ts";

const bytes = (hex: string) => Buffer.from(hex.replace(/\s/g, ""), "hex");
const blockLimit = 65_536;

function createReader(limit = blockLimit) {
  const decoder = createFieldDecoder(limit);
  return (block: Uint8Array) => {
    const { names, values, count, tooLarge } = decoder.decode(Buffer.from(block), 0, block.length);
    return { fields: names.slice(0, count).map((name, at) => `${name}: ${values[at]}`), tooLarge };
  };
}

const cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
const date = (second: number) => `date: Mon, 21 Oct 2013 20:13:${second} GMT`;
const answers = [
  [":status: 302", "cache-control: private", date(21), "location: https://www.example.com"],
  [":status: 307", "cache-control: private", date(21), "location: https://www.example.com"],
  [
    ":status: 200",
    "cache-control: private",
    date(22),
    "location: https://www.example.com",
    "content-encoding: gzip",
    `set-cookie: ${cookie}`,
  ],
];
const start = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const requests = [
  start,
  [...start, "cache-control: no-cache"],
  [":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com", "custom-key: custom-value"],
];
/** The RFC's examples of answers assume a table of 256 bytes. */
const tableOf256 = "3fe101";

describe("the examples of RFC 7541, appendix C", () => {
  test.each<[string, string[], string[][]]>([
    ["C.2.1", ["400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"], [["custom-key: custom-header"]]],
    ["C.2.2", ["040c 2f73 616d 706c 652f 7061 7468"], [[":path: /sample/path"]]],
    ["C.2.3", ["1008 7061 7373 776f 7264 0673 6563 7265 74"], [["password: secret"]]],
    ["C.2.4", ["82"], [[":method: GET"]]],
    [
      "C.3, requests",
      [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
      ],
      requests,
    ],
    [
      "C.4, requests with Huffman coding",
      [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
      ],
      requests,
    ],
    [
      "C.5, answers",
      [
        `${tableOf256} 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        "4803 3330 37c1 c0bf",
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d
         6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
      ],
      answers,
    ],
    [
      "C.6, answers with Huffman coding",
      [
        `${tableOf256} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        "4883 640e ffc1 c0bf",
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106
         3d50 07`,
      ],
      answers,
    ],
  ])("%s", (_, blocks, expected) => {
    const read = createReader();
    expect(blocks.map((block) => read(bytes(block)).fields)).toEqual(expected);
  });
});

describe("an invalid block", () => {
  test.each([
    ["an index that is none", "80"],
    ["an index beyond the static table", "be"],
    ["a name beyond the static table", "7f 00 01 61"],
    ["an integer that never ends", "ff ff ff ff ff ff ff ff ff 7f"],
    ["an integer that is cut", "ff"],
    ["a string that is cut", "04 0c 2f"],
    ["a string that is missing", "04"],
    ["a name that is missing", "40"],
    ["Huffman padding of eight ones", "04 86 00 00 00 00 00 ff"],
    ["Huffman padding of zeros", "04 81 18"],
    ["the end of string inside a string", "04 84 ff ff ff ff"],
    ["a table larger than allowed", "3f e2 1f"],
    ["a change of the table behind a field", "88 20"],
  ])("ends the connection: %s", (_, block) => {
    expect(() => createReader()(bytes(block))).toThrow(ConnectionError);
    expect(() => createReader()(bytes(block))).toThrow(expect.objectContaining({ code: Code.compressionError }));
  });
});

test("forgets the oldest fields, and all when one is larger than the table or the table is closed", () => {
  const read = createReader();
  const field = (name: string, size: number) =>
    Buffer.concat([
      Buffer.of(0x40, 1),
      Buffer.from(name),
      Buffer.of(127, ...varint(size - 127)),
      Buffer.alloc(size, "v"),
    ]);
  read(field("a", 2_000));
  read(field("b", 2_000));
  expect(read(bytes("bf be")).fields.map((each) => each[0])).toEqual(["a", "b"]);
  read(field("c", 1_000));
  expect(read(bytes("bf be")).fields.map((each) => each[0])).toEqual(["b", "c"]);
  expect(() => read(bytes("c0"))).toThrow(ConnectionError);
  read(field("d", 5_000));
  expect(() => read(bytes("be"))).toThrow(ConnectionError);
  read(field("e", 1_000));
  expect(() => read(bytes("20 be"))).toThrow(ConnectionError);
});

test("reads an oversized list to its end, and drops the fields beyond the limit", () => {
  const read = createReader(500);
  const { fields, tooLarge } = read(bytes(`4001 61 64${"76".repeat(100)} ${"be".repeat(100)}`));
  expect(tooLarge).toBe(true);
  expect(fields.length).toBeLessThan(4);
  expect(read(bytes("be")).fields).toEqual([`a: ${"v".repeat(100)}`]);
});

test("3,000 mangled blocks are read or refused, and nothing else", () => {
  const good = [
    `${tableOf256} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e`,
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970",
  ].map(bytes);
  let refused = 0;
  let decode = createFieldDecoder(blockLimit);
  const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
  const block = fc
    .tuple(fc.constantFrom(...good), fc.array(change, { maxLength: 6 }), fc.uint8Array({ maxLength: 40 }))
    .map(([base, changes, tail]) => {
      const mangled = Buffer.concat([base, tail]);
      for (const { at, byte } of changes) mangled[at % mangled.length] = byte;
      return mangled;
    });
  fc.assert(
    fc.property(block, (mangled) => {
      try {
        const { count, names, values } = decode.decode(mangled, 0, mangled.length);
        for (let at = 0; at < count; at++) expect([typeof names[at], typeof values[at]]).toEqual(["string", "string"]);
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
        refused++;
        decode = createFieldDecoder(blockLimit);
      }
    }),
    { numRuns: 3_000 * (process.env.HERALD_TEST_LONG ? 10 : 1) },
  );
  expect(refused).toBeGreaterThan(300);
});

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)];
}
