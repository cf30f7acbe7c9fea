/**
 * RFC 7541, appendix B: how many bits each of the 256 bytes and, last, the end of string has. The code is canonical, so
 * lengths are all there is to it.
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

/** Shorter codes first, and among those of a length the lower byte first: each is one more than the one before. */
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
 * A machine that reads four bits at a time. Its states are the inner nodes of the code's tree; no code is shorter than
 * five bits, so a step completes at most one byte. A step is packed as state << 9 | completes << 8 | byte.
 */
const emitsFlag = 0x100;
const brokenCode = -1; // the end of a string, which RFC 7541 forbids inside one
const { steps, mayEnd } = build();

/** Writes what `bytes` from `start` to `end` says to `out` and returns how many bytes it is, or -1 if it is no Huffman code. */
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
      // Padding is the beginning of the end of string, all ones, and less than a byte.
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
