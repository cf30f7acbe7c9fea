import type { TransportRequest } from "../transport.ts";
import { staticNames } from "./hpack-tables.ts";

/** A field in the peer's table. Its index follows from how many entries were inserted after it. */
type Entry = { readonly owner: Name; readonly value: string; readonly number: number };

/** The encoder's state for one header name. */
type Name = {
  readonly name: string;
  /** Index in the static table; 0 when the name is not there. */
  readonly index: number;
  readonly secret: boolean;
  readonly entries: Map<string, Entry>;
  /** The newest entry: a literal can refer to its name. */
  newest: Entry | undefined;
  /** The value in the previous request, and its entry. */
  last: string | undefined;
  lastEntry: Entry | undefined;
};

const defaultTableSize = 4_096; // the default of RFC 7541; a larger table that the peer allows is not needed
const entryOverhead = 32;
const staticCount = 61;
const maxShareOfOne = 4; // a field larger than a quarter of the table would evict the repeated ones
const maxNames = 64; // a provider has about eight; further names are never indexed
const maxInteger = 6; // bytes of an integer below 2^32
const methodPost = 0x83;
const schemeHttps = 0x87;
const neverIndexed = { first: 0x10, mask: 15 } as const;
const notIndexed = { first: 0x00, mask: 15 } as const;
const indexedFromNow = { first: 0x40, mask: 63 } as const;

/** Credentials and device tokens: never indexed, neither here nor by intermediaries (RFC 7541, 7.1.3). */
const secretNames: ReadonlySet<string> = new Set(["authorization", ":path", "cookie"]);

/**
 * The HPACK encoder (RFC 7541) of one connection. A value that two consecutive requests share enters the peer's table and
 * then takes one byte. Values that change with every request stay out. It does not use Huffman coding: that would save a
 * tenth of the bytes but cost both sides more CPU than the bytes are worth.
 */
export function createFieldEncoder(authority: string) {
  const names = new Map<string, Name>();
  const methodName = learn(":method");
  const authorityName = learn(":authority");
  const pathName = learn(":path");
  let queue: Entry[] = []; // oldest first, from `oldest` on
  let oldest = 0;
  let inserted = 0;
  let size = 0;
  let most = defaultTableSize;
  /** The smallest table size since the last block. The next block announces it and the current size to the peer. */
  let least: number | undefined;

  function learn(name: string): Name {
    const index = staticNames.get(name) ?? 0;
    const secret = secretNames.has(name);
    const known: Name = {
      name,
      index,
      secret,
      entries: new Map(),
      newest: undefined,
      last: undefined,
      lastEntry: undefined,
    };
    if (names.size < maxNames) names.set(name, known);
    return known;
  }

  const indexOf = (entry: Entry) => staticCount + inserted - entry.number;

  function evict(limit: number): void {
    while (size > limit) {
      const entry = queue[oldest++] as Entry;
      const { owner, value } = entry;
      owner.entries.delete(value);
      if (owner.newest === entry) owner.newest = undefined;
      if (owner.lastEntry === entry) owner.lastEntry = undefined;
      size -= owner.name.length + value.length + entryOverhead;
    }
    if (oldest * 2 > queue.length) {
      queue = queue.slice(oldest);
      oldest = 0;
    }
  }

  function insert(owner: Name, value: string, entrySize: number): void {
    evict(most - entrySize);
    const entry: Entry = { owner, value, number: inserted++ };
    queue.push(entry);
    size += entrySize;
    owner.entries.set(value, entry);
    owner.newest = entry;
    owner.lastEntry = entry;
  }

  function literal(bytes: Buffer, start: number, kind: { first: number; mask: number }, to: Name, value: string) {
    const index = to.index !== 0 ? to.index : to.newest === undefined ? 0 : indexOf(to.newest);
    let at = writeInteger(bytes, start, kind.first, kind.mask, index);
    if (index === 0) at = writeText(bytes, at, to.name);
    return writeText(bytes, at, value);
  }

  function field(bytes: Buffer, at: number, to: Name, value: string): number {
    if (to.secret) return literal(bytes, at, neverIndexed, to, value);
    const repeated = to.last === value;
    if (!repeated) {
      to.last = value;
      to.lastEntry = to.entries.size === 0 ? undefined : to.entries.get(value);
    }
    if (to.lastEntry !== undefined) return writeInteger(bytes, at, 0x80, 127, indexOf(to.lastEntry));
    const entrySize = to.name.length + value.length + entryOverhead;
    // A name in neither table costs its full length every time, so its first value is indexed at once.
    const nameless = to.index === 0 && to.newest === undefined;
    if ((!repeated && !nameless) || entrySize * maxShareOfOne > most || !names.has(to.name))
      return literal(bytes, at, notIndexed, to, value);
    const next = literal(bytes, at, indexedFromNow, to, value);
    insert(to, value, entrySize);
    return next;
  }

  return {
    /** The maximum size in bytes of a request's encoded fields. */
    most({ method, path, headers }: TransportRequest): number {
      let bytes = 2 * maxInteger + 2 + (method?.length ?? 0) + authority.length + path.length + 3 * maxField;
      for (const name in headers) bytes += name.length + (headers[name] as string).length + maxField;
      return bytes;
    },
    /** Writes a request's fields and returns where they end. The caller must send every block, in this order. */
    encode(bytes: Buffer, start: number, { method, path, headers }: TransportRequest): number {
      let at = start;
      if (least !== undefined) {
        if (least < most) at = writeInteger(bytes, at, 0x20, 31, least);
        at = writeInteger(bytes, at, 0x20, 31, most);
        least = undefined;
      }
      if (method === undefined) bytes[at++] = methodPost;
      else at = literal(bytes, at, notIndexed, methodName, method);
      bytes[at++] = schemeHttps;
      at = field(bytes, at, authorityName, authority);
      at = field(bytes, at, pathName, path);
      for (const name in headers) at = field(bytes, at, names.get(name) ?? learn(name), headers[name] as string);
      return at;
    },
    /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE. */
    limitTable(bytes: number): void {
      const limit = Math.min(defaultTableSize, bytes);
      if (limit === most) return;
      most = limit;
      least = Math.min(least ?? limit, limit);
      evict(most);
    },
  };
}

const maxField = 3 * maxInteger;

function writeInteger(bytes: Buffer, start: number, first: number, mask: number, value: number): number {
  let at = start;
  if (value < mask) {
    bytes[at++] = first | value;
    return at;
  }
  bytes[at++] = first | mask;
  let rest = value - mask;
  while (rest >= 128) {
    bytes[at++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  bytes[at++] = rest;
  return at;
}

/** Writes a string without Huffman coding. It is ASCII: `createRequestCheck` has checked it. */
function writeText(bytes: Buffer, start: number, value: string): number {
  const at = writeInteger(bytes, start, 0, 127, value.length);
  return at + bytes.write(value, at, "latin1");
}
