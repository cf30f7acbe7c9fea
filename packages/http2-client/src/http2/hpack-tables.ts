/** The static table of RFC 7541, appendix A. The first entry has index 1. */
const text = `:authority|
:method|GET
:method|POST
:path|/
:path|/index.html
:scheme|http
:scheme|https
:status|200
:status|204
:status|206
:status|304
:status|400
:status|404
:status|500
accept-charset|
accept-encoding|gzip, deflate
accept-language|
accept-ranges|
accept|
access-control-allow-origin|
age|
allow|
authorization|
cache-control|
content-disposition|
content-encoding|
content-language|
content-length|
content-location|
content-range|
content-type|
cookie|
date|
etag|
expect|
expires|
from|
host|
if-match|
if-modified-since|
if-none-match|
if-range|
if-unmodified-since|
last-modified|
link|
location|
max-forwards|
proxy-authenticate|
proxy-authorization|
range|
referer|
refresh|
retry-after|
server|
set-cookie|
strict-transport-security|
transfer-encoding|
user-agent|
vary|
via|
www-authenticate|`;

export const staticTable: ReadonlyArray<{ readonly name: string; readonly value: string }> = text
  .split("\n")
  .map((line) => {
    const [name = "", value = ""] = line.split("|");
    return { name, value };
  });

/** The index of the first entry of each name. */
export const staticNames: ReadonlyMap<string, number> = new Map(
  staticTable.map(({ name }, at): [string, number] => [name, at + 1]).reverse(),
);

/**
 * RFC 7541, appendix B: the code length in bits of each of the 256 bytes and, last, of the end of string (EOS). The code is
 * canonical, so the lengths define it.
 */
const huffmanLengths: readonly number[] = `
13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10
13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6
15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28
20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26
30`
  .trim()
  .split(/\s+/)
  .map(Number);

const endOfString = 256;

type HuffmanCode = { readonly symbol: number; readonly bits: number; readonly code: number };

/** Sorted by length, then by byte. Each code is the previous code plus one, shifted to its own length. */
export function huffmanCodes(): HuffmanCode[] {
  const codes = huffmanLengths
    .map((bits, symbol) => ({ symbol, bits, code: 0 }))
    .sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  let next = 0;
  let before = 0;
  for (const code of codes) {
    next *= 2 ** (code.bits - before);
    code.code = next++;
    before = code.bits;
  }
  return codes;
}

/**
 * A state machine that reads four bits at a time. Its states are the inner nodes of the code's tree. No code is shorter than
 * five bits, so a step completes at most one byte. A step is packed as state << 9 | completes << 8 | byte.
 */
const emitsFlag = 0x100;
const brokenCode = -1; // EOS, which RFC 7541 forbids inside a string
const { steps, mayEnd } = build();

/** Decodes `bytes` from `start` to `end` into `out`. Returns the decoded length, or -1 if the Huffman code is invalid. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number, out: Uint8Array): number {
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    const high = steps[(state << 4) | (byte >> 4)] as number;
    if (high === brokenCode) return -1;
    if (high & emitsFlag) out[length++] = high & 0xff;
    const low = steps[((high >> 9) << 4) | (byte & 15)] as number;
    if (low === brokenCode) return -1;
    if (low & emitsFlag) out[length++] = low & 0xff;
    state = low >> 9;
  }
  return mayEnd[state] === 1 ? length : -1;
}

/** The shortest code has five bits. */
export const maxHuffmanDecoded = (length: number): number => Math.floor((length * 8) / 5);

function build() {
  type Node = { children: [Tree | undefined, Tree | undefined]; state: number; mayEnd: boolean };
  type Tree = Node | number;
  const nodes: Node[] = [];
  const addNode = (mayEnd: boolean): Node => {
    const node: Node = { children: [undefined, undefined], state: nodes.length, mayEnd };
    nodes.push(node);
    return node;
  };
  const root = addNode(true);
  for (const { symbol, bits, code } of huffmanCodes()) {
    let node = root;
    for (let bit = bits - 1; bit > 0; bit--) {
      const side = Math.floor(code / 2 ** bit) % 2;
      // Padding is a prefix of EOS: all ones, and at most 7 bits.
      const child = node.children[side] ?? addNode(node.mayEnd && side === 1 && bits - bit <= 7);
      if (typeof child === "number") throw new Error("the code is not prefix-free");
      node.children[side] = child;
      node = child;
    }
    node.children[code % 2] = symbol;
  }
  const steps = new Int32Array(nodes.length * 16);
  for (const from of nodes) {
    for (let nibble = 0; nibble < 16; nibble++) {
      let node = from;
      let emitted = 0;
      for (let bit = 3; bit >= 0 && emitted !== brokenCode; bit--) {
        const child = node.children[(nibble >> bit) & 1];
        if (child === undefined || child === endOfString) emitted = brokenCode;
        else if (typeof child === "number") {
          emitted = emitsFlag | child;
          node = root;
        } else node = child;
      }
      steps[(from.state << 4) | nibble] = emitted === brokenCode ? brokenCode : (node.state << 9) | emitted;
    }
  }
  return { steps, mayEnd: Uint8Array.from(nodes, (node) => Number(node.mayEnd)) };
}
