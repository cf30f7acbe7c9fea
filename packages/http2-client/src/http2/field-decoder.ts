import { decodeHuffman, maxHuffmanDecoded, staticTable } from "./hpack-tables.ts";
import { Code, ConnectionError } from "./wire.ts";

/** The fields of one block. The next block reuses the arrays, so only the first `count` entries are valid. */
export type FieldList = {
  readonly names: string[];
  readonly values: string[];
  count: number;
  /** As RFC 9113 counts it: the bytes of names and values, plus 32 per field. */
  size: number;
  /** The block exceeded the limit, so fields are missing here. */
  tooLarge: boolean;
};

const defaultTableSize = 4_096; // the default of RFC 7541; this side never announces another
const fieldOverhead = 32;
const staticCount = staticTable.length;
const maxIntegerShift = 21; // 2^28: more than any length or index that fits a block

type Field = { readonly name: string; readonly value: string };

/** The HPACK decoder (RFC 7541) of one connection. It decodes lists larger than `maxListSize` too, but does not keep them. */
export function createFieldDecoder(maxListSize: number) {
  const list: FieldList = { names: [], values: [], count: 0, size: 0, tooLarge: false };
  let table: Field[] = []; // oldest first, from `oldest` on
  let oldest = 0;
  let tableSize = 0;
  let maxTableSize = defaultTableSize;
  let bytes: Buffer = Buffer.alloc(0);
  let at = 0;
  let end = 0;

  function integer(mask: number): number {
    let value = (bytes[at++] as number) & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (at >= end || shift > maxIntegerShift) throw broken("an integer without end");
      const byte = bytes[at++] as number;
      value += (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  function text(): string {
    if (at >= end) throw broken("a string is missing");
    const huffman = (bytes[at] as number) >= 128;
    const length = integer(127);
    const start = at;
    at += length;
    if (at > end) throw broken("a string is longer than its block");
    if (!huffman) return bytes.toString("latin1", start, at);
    const scratch = scratchOf(maxHuffmanDecoded(length));
    const decoded = decodeHuffman(bytes, start, at, scratch);
    if (decoded < 0) throw broken("a string is no Huffman code");
    return scratch.toString("latin1", 0, decoded);
  }

  function fieldAt(index: number): Field {
    const field = index <= staticCount ? staticTable[index - 1] : table[table.length - (index - staticCount)];
    if (field === undefined || table.length - (index - staticCount) < oldest)
      throw broken(`there is no field ${index}`);
    return field;
  }

  function evict(most: number): void {
    while (tableSize > most) {
      const { name, value } = table[oldest] as Field;
      table[oldest++] = evictedField;
      tableSize -= name.length + value.length + fieldOverhead;
    }
    if (oldest * 2 > table.length) {
      table = table.slice(oldest);
      oldest = 0;
    }
  }

  function insert(field: Field): void {
    const size = field.name.length + field.value.length + fieldOverhead;
    evict(Math.max(0, maxTableSize - size));
    if (size > maxTableSize) return; // RFC 7541: a field larger than the table empties it
    table.push(field);
    tableSize += size;
  }

  function keep({ name, value }: Field): void {
    list.size += name.length + value.length + fieldOverhead;
    if (list.size > maxListSize) list.tooLarge = true;
    if (list.tooLarge) return;
    list.names[list.count] = name;
    list.values[list.count++] = value;
  }

  function resize(): void {
    if (list.size > 0) throw broken("the table changes its size behind a field");
    const most = integer(31);
    if (most > defaultTableSize) throw broken("the table is larger than allowed");
    maxTableSize = most;
    evict(most);
  }

  return {
    /** Decodes a whole block, always into the same list. Throws a ConnectionError when the two sides' tables may differ. */
    decode(block: Buffer, from: number, to: number): FieldList {
      bytes = block;
      at = from;
      end = to;
      list.count = 0;
      list.size = 0;
      list.tooLarge = false;
      while (at < end) {
        const first = bytes[at] as number;
        if (first >= 128) {
          keep(fieldAt(integer(127)));
        } else if (first >= 64) {
          const field = literal(63);
          keep(field);
          insert(field);
        } else if (first >= 32) {
          resize();
        } else {
          keep(literal(15));
        }
      }
      return list;
    },
  };

  function literal(mask: number): Field {
    const index = integer(mask);
    const name = index === 0 ? text() : fieldAt(index).name;
    return { name, value: text() };
  }
}

const evictedField: Field = { name: "", value: "" };
const broken = (what: string) => new ConnectionError(Code.compressionError, `in the peer's headers ${what}`);

let scratch = Buffer.allocUnsafeSlow(4_096);
/** All connections share one buffer: callers copy the decoded text before anything else runs. */
function scratchOf(size: number): Buffer {
  if (scratch.length < size) scratch = Buffer.allocUnsafeSlow(size);
  return scratch;
}
