import { randomInt } from "node:crypto";
import { createShares, HeraldError } from "@herald/kit";
import type { ShareOwner } from "../auth/caller.ts";

const bytesPerEntry = 8;
/** Many small tables: each of them grows often, by little and in no time. */
const tableCount = 64;
const firstSize = 16;
/** A table grows by an eighth when it is three quarters full, so an entry takes 11 to 12 bytes. */
const growth = 8;
const retryAfterSeconds = 10;

/** The part of the memory that the sets of one project, or of one operator, may use. */
export type HashRoom = {
  /** Throws rate-limited, or overloaded. */
  readonly take: (bytes: number) => void;
  readonly give: (bytes: number) => void;
};

/** Memory that all sets of a process share, as their uploads share places; see `createShares`. */
export const createHashMemory = ({ total, perProject }: { readonly total: number; readonly perProject: number }) => {
  const shares = createShares(total);
  return {
    roomOf: (owner: ShareOwner): HashRoom => ({
      take: (bytes) => {
        if (shares.of(owner) + bytes > perProject || !shares.has(owner, bytes))
          throw new HeraldError(
            "rate-limited",
            "recipients: your uploads here have as many lines as they may have at a time; wait until others have ended",
            { retryAfterSeconds },
          );
        if (shares.free() < bytes)
          throw new HeraldError("overloaded", "recipients: too many uploads are in progress", { retryAfterSeconds });
        shares.take(owner, bytes);
      },
      give: (bytes) => shares.give(owner, bytes),
    }),
  };
};

type Key = readonly [low: number, high: number];

/** Rounds after the text, before each half of the result. */
const lastRounds = 3;

/**
 * HalfSipHash-1-3 of a text's UTF-16, 64 bits in two halves. A SHA of each line costs ten times as much, and without a secret key a sender
 * could choose targets that all fall on one slot.
 */
export const halfSipHash = (text: string, [low, high]: Key): Key => {
  // The last word has the length, as the algorithm pads.
  const words = (text.length >> 1) + 1;
  let v0 = low;
  let v1 = high ^ 0xee;
  let v2 = low ^ 0x6c796765;
  let v3 = high ^ 0x74656462;
  let first = 0;
  for (let step = 0; step < words + 2 * lastRounds; step++) {
    let word = 0;
    if (step < words) {
      const at = 2 * step;
      if (at < text.length) word = text.charCodeAt(at);
      word |= (at + 1 < text.length ? text.charCodeAt(at + 1) : (2 * text.length) << 8) << 16;
    } else if (step === words) v2 ^= 0xee;
    else if (step === words + lastRounds) {
      first = v1 ^ v3;
      v1 ^= 0xdd;
    }
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return [first >>> 0, (v1 ^ v3) >>> 0];
};

type Table = { slots: Uint32Array; size: number };

/** Two places for each entry. The second is 0 only where none is. */
const put = (slots: Uint32Array, one: number, other: number): boolean => {
  const entries = slots.length / 2;
  for (let at = 2 * Math.floor((other / 2 ** 32) * entries); ; at = at + 2 === slots.length ? 0 : at + 2) {
    if (slots[at] === one && slots[at + 1] === other) return false;
    if (slots[at + 1] !== 0) continue;
    slots[at] = one;
    slots[at + 1] = other;
    return true;
  }
};

const copyInto = (larger: Uint32Array, slots: Uint32Array): Uint32Array => {
  for (let at = 0; at < slots.length; at += 2) {
    const other = slots[at + 1] ?? 0;
    if (other !== 0) put(larger, slots[at] ?? 0, other);
  }
  return larger;
};

/** Texts that were seen, as hashes of 64 bits: of two million, two are equal once in nine million files. */
export const createHashSet = (room: HashRoom) => {
  const key: Key = [randomInt(2 ** 32), randomInt(2 ** 32)];
  let bytes = tableCount * firstSize * bytesPerEntry;
  room.take(bytes);
  const tables = Array.from({ length: tableCount }, (): Table => ({ slots: new Uint32Array(firstSize * 2), size: 0 }));

  return {
    /** False when the text was added before. Throws as {@link HashRoom}. */
    add: (text: string): boolean => {
      const [one, other] = halfSipHash(text, key);
      const table = tables[one % tableCount] as Table;
      if (!put(table.slots, one, other || 1)) return false;
      if (++table.size * 8 <= table.slots.length * 3) return true;
      const more = Math.ceil(table.slots.length / 2 / growth);
      room.take(more * bytesPerEntry);
      bytes += more * bytesPerEntry;
      table.slots = copyInto(new Uint32Array(table.slots.length + 2 * more), table.slots);
      return true;
    },
    bytes: () => bytes,
    release: () => room.give(bytes),
  };
};

export type HashSet = ReturnType<typeof createHashSet>;
