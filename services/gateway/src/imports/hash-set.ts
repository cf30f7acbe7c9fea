import { randomInt } from "node:crypto";
import { HeraldError } from "@herald/kit";

const bytesPerEntry = 8;
const firstSize = 1_024;

/** Memory that all sets of a process share. */
export const createHashMemory = (maxBytes: number) => {
  let used = 0;
  return {
    take: (bytes: number): void => {
      if (used + bytes > maxBytes)
        throw new HeraldError("overloaded", "recipients: too many uploads are in progress", { retryAfterSeconds: 10 });
      used += bytes;
    },
    give: (bytes: number): void => {
      used -= bytes;
    },
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

/** Texts that were seen, as hashes of 64 bits: of two million, two are equal once in nine million files. */
export const createHashSet = (memory: ReturnType<typeof createHashMemory>) => {
  const key: Key = [randomInt(2 ** 32), randomInt(2 ** 32)];
  memory.take(firstSize * bytesPerEntry);
  /** Two places for each entry. The second is 0 only where none is. */
  let slots = new Uint32Array(firstSize * 2);
  let size = 0;

  const put = (into: Uint32Array, one: number, other: number): boolean => {
    const mask = into.length - 2;
    for (let at = (one << 1) & mask; ; at = (at + 2) & mask) {
      if (into[at] === one && into[at + 1] === other) return false;
      if (into[at + 1] !== 0) continue;
      into[at] = one;
      into[at + 1] = other;
      return true;
    }
  };
  const grow = (): void => {
    memory.take(slots.byteLength);
    const larger = new Uint32Array(slots.length * 2);
    for (let at = 0; at < slots.length; at += 2) {
      const other = slots[at + 1] ?? 0;
      // Never 0 in an entry.
      if (other !== 0) put(larger, slots[at] ?? 0, other);
    }
    slots = larger;
  };

  return {
    /** False when the text was added before. Throws `overloaded`. */
    add: (text: string): boolean => {
      const [one, other] = halfSipHash(text, key);
      if (!put(slots, one, other || 1)) return false;
      if (++size * 8 > slots.length * 3) grow();
      return true;
    },
    release: () => memory.give(slots.byteLength),
  };
};

export type HashSet = ReturnType<typeof createHashSet>;
