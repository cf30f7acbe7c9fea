import type { TransportRequest } from "../transport.ts";
import { staticNames } from "./static-table.ts";

/** A field that the peer's table holds. Its index is told by how many came after it. */
type Entry = { readonly owner: Name; readonly value: string; readonly number: number };

/** What is known of a header's name on this connection. */
type Name = {
  readonly name: string;
  /** In the static table; 0 when it is not there. */
  readonly index: number;
  readonly secret: boolean;
  readonly entries: Map<string, Entry>;
  /** The newest entry, for the sake of the name. */
  newest: Entry | undefined;
  /** The value of the request before, and its entry. */
  last: string | undefined;
  lastEntry: Entry | undefined;
};

const defaultTableSize = 4_096; // what holds until the peer says otherwise; what it grants beyond is not needed
const entryOverhead = 32;
const staticCount = 61;
const maxShareOfOne = 4; // a field larger than a quarter of the table would push out what repeats
const maxNames = 64; // a provider has about eight; what comes after these is written without memory
const maxInteger = 6; // bytes of an integer below 2^32
const methodPost = 0x83;
const schemeHttps = 0x87;
const neverIndexed = { first: 0x10, mask: 15 } as const;
const notIndexed = { first: 0x00, mask: 15 } as const;
const indexedFromNow = { first: 0x40, mask: 63 } as const;

/** The credential, and the device's token: never indexed, here or by intermediaries (RFC 7541, 7.1.3). */
const secretNames: ReadonlySet<string> = new Set(["authorization", ":path", "cookie"]);

/**
 * HPACK (RFC 7541), the writing side of one connection. A value that comes twice in a row is put into the peer's table
 * and from then on is one byte; what differs with every request stays out. Nothing is Huffman-coded: that would save a
 * tenth of the bytes and cost both sides more than they weigh.
 */
export function createFieldEncoder(authority: string) {
  const names = new Map<string, Name>();
  const authorityName = learn(":authority");
  const pathName = learn(":path");
  let queue: Entry[] = []; // oldest first, from `oldest` on
  let oldest = 0;
  let inserted = 0;
  let size = 0;
  let most = defaultTableSize;
  /** What the peer must be told before the next block: the least size since the last, and the size now. */
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
    // A name that no table has costs its length every time: the first value that comes with it brings it in.
    const nameless = to.index === 0 && to.newest === undefined;
    if ((!repeated && !nameless) || entrySize * maxShareOfOne > most || !names.has(to.name))
      return literal(bytes, at, notIndexed, to, value);
    const next = literal(bytes, at, indexedFromNow, to, value);
    insert(to, value, entrySize);
    return next;
  }

  return {
    /** At most so many bytes a request's fields become. */
    most({ path, headers }: TransportRequest): number {
      let bytes = 2 * maxInteger + 2 + maxField + authority.length + path.length + maxField;
      for (const name in headers) bytes += name.length + (headers[name] as string).length + maxField;
      return bytes;
    },
    /** Writes a request's fields and returns where they end. Every block made must be sent, in this order. */
    encode(bytes: Buffer, start: number, { path, headers }: TransportRequest): number {
      let at = start;
      if (least !== undefined) {
        if (least < most) at = writeInteger(bytes, at, 0x20, 31, least);
        at = writeInteger(bytes, at, 0x20, 31, most);
        least = undefined;
      }
      bytes[at++] = methodPost;
      bytes[at++] = schemeHttps;
      at = field(bytes, at, authorityName, authority);
      at = field(bytes, at, pathName, path);
      for (const name in headers) at = field(bytes, at, names.get(name) ?? learn(name), headers[name] as string);
      return at;
    },
    /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
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

/** A string as it is; what is sent is ASCII, checked before. */
function writeText(bytes: Buffer, start: number, value: string): number {
  const at = writeInteger(bytes, start, 0, 127, value.length);
  return at + bytes.write(value, at, "latin1");
}
