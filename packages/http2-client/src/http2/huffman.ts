import { END_OF_STRING, huffmanCodes } from "./huffman-lengths.ts";

/**
 * A machine that reads four bits at a time. Its states are the inner nodes of the code's tree; no code is shorter than
 * five bits, so a step completes at most one byte. A step is packed as state << 9 | completes << 8 | byte.
 */
const EMITS = 0x100;
const BROKEN = -1; // the end of a string, which RFC 7541 forbids inside one
const { steps, mayEnd } = build();

/** Writes what `bytes` from `start` to `end` says to `out` and returns how many bytes it is, or -1 if it is no Huffman code. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number, out: Uint8Array): number {
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    const high = steps[(state << 4) | (byte >> 4)] as number;
    if (high === BROKEN) return -1;
    if (high & EMITS) out[length++] = high & 0xff;
    const low = steps[((high >> 9) << 4) | (byte & 15)] as number;
    if (low === BROKEN) return -1;
    if (low & EMITS) out[length++] = low & 0xff;
    state = low >> 9;
  }
  return mayEnd[state] === 1 ? length : -1;
}

/** The shortest code has five bits. */
export const huffmanDecodedMost = (length: number): number => Math.floor((length * 8) / 5);

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
      for (let bit = 3; bit >= 0 && emitted !== BROKEN; bit--) {
        const child = node.children[(nibble >> bit) & 1];
        if (child === undefined || child === END_OF_STRING) emitted = BROKEN;
        else if (typeof child === "number") {
          emitted = EMITS | child;
          node = root;
        } else node = child;
      }
      steps[(from.state << 4) | nibble] = emitted === BROKEN ? BROKEN : (node.state << 9) | emitted;
    }
  }
  return { steps, mayEnd: Uint8Array.from(nodes, (node) => Number(node.mayEnd)) };
}
