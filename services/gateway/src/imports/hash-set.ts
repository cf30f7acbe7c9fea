import { hash } from "node:crypto";
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

/** Texts that were seen, as hashes of 64 bits: of two million, two are equal once in nine million files. */
export const createHashSet = (memory: ReturnType<typeof createHashMemory>) => {
  memory.take(firstSize * bytesPerEntry);
  let slots = new BigUint64Array(firstSize);
  let size = 0;

  const put = (into: BigUint64Array, key: bigint): boolean => {
    const mask = into.length - 1;
    for (let at = Number(key & BigInt(mask)); ; at = (at + 1) & mask) {
      if (into[at] === key) return false;
      if (into[at] !== 0n) continue;
      into[at] = key;
      return true;
    }
  };
  const grow = (): void => {
    memory.take(slots.length * bytesPerEntry);
    const larger = new BigUint64Array(slots.length * 2);
    for (const key of slots) if (key !== 0n) put(larger, key);
    slots = larger;
  };

  return {
    /** False when the text was added before. Throws `overloaded`. */
    add: (text: string): boolean => {
      const key = hash("sha1", text, "buffer").readBigUInt64LE() || 1n;
      if (!put(slots, key)) return false;
      if (++size * 4 > slots.length * 3) grow();
      return true;
    },
    release: () => memory.give(slots.length * bytesPerEntry),
  };
};

export type HashSet = ReturnType<typeof createHashSet>;
