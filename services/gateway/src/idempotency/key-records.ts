import { hash } from "node:crypto";
import type { Bucket, Entry } from "@herald/bus";
import type { IdempotencyRecord } from "@herald/contracts";
import { createByteCache, createGroupCommit, HeraldError, hasCode, type Logger } from "@herald/kit";

/** A request with an Idempotency-Key. */
export type KeyedRequest = {
  /** The key of its record: a hash of owner, route and Idempotency-Key. */
  readonly place: string;
  /** A project, or the administration. */
  readonly owner: string;
  /** A hash of its body. */
  readonly body: string;
  /** The time to live of its record in ms; absent: the bucket's default. */
  readonly ttlMs?: number | undefined;
};

/** A record to write for a request. */
export type NewRecord = { readonly request: KeyedRequest; readonly record: IdempotencyRecord };

export type KeyRecords = ReturnType<typeof createKeyRecords>;

/**
 * Writes that arrive during a write share the next one: keys of new requests and results of earlier ones. One write at a time makes groups
 * larger.
 */
const writes = { max: 256, concurrent: 1 };

type Write = { readonly create: readonly NewRecord[]; readonly put: readonly NewRecord[] };

/** Room for about 11,000 keys; most repeats arrive soon. */
const recentBytes = 4 * 1_048_576;
const stateBytes = 128;

/** `performed`: the id of the attempt that this gateway performed. */
type State = { readonly pending: boolean; readonly performed?: string };

/** 128 bits: collisions do not happen by chance, and a client that forces one can only confuse its own project. */
export const digest = (text: string): string => hash("sha256", text, "buffer").subarray(0, 16).toString("base64url");

export const createKeyRecords = (bucket: () => Bucket<IdempotencyRecord>, log: Logger) => {
  /**
   * Keys that this gateway knows to be claimed. A claimed key in a group would make the broker refuse the whole group, so a repeat of a
   * known key reads its record instead.
   */
  const recent = createByteCache<string, State>({
    name: "idempotency-keys",
    maxBytes: recentBytes,
    sizeOf: () => stateBytes,
  });
  const entryOf = ({ request: { place: key, ttlMs }, record: value }: NewRecord) => ({ key, value, ttlMs });
  const write = createGroupCommit<Write, boolean[]>(async (group) => {
    const create = group.flatMap((one) => one.create);
    // Only the last record of a key is written.
    const last = new Map(group.flatMap((one) => one.put).map((one) => [one.request.place, one]));
    try {
      const put = [...last.values()].map(entryOf);
      const won = (await bucket().writeAll({ create: create.map(entryOf), put })).values();
      return group.map((one) => one.create.map(() => won.next().value === true));
    } catch (err) {
      if (last.size > 0) log.warn({ err, records: last.size }, "could not record results of idempotent requests");
      throw err;
    }
  }, writes);

  return {
    /**
     * Claims the keys of first attempts. Returns, in order, whether each key was free. Throws bus-unavailable; any of the keys may be
     * claimed then.
     */
    create: async (records: readonly NewRecord[]): Promise<boolean[]> => {
      const places = records.map(({ request }) => request.place);
      const asked = places.map((place) => {
        if (recent.get(place) !== undefined) return false;
        recent.set(place, { pending: true });
        return true;
      });
      const settle = (state: State | undefined) => {
        for (const [at, place] of places.entries()) {
          if (!asked[at]) continue;
          if (state) recent.set(place, state);
          else recent.delete(place);
        }
      };
      const wanted = records.filter((_, at) => asked[at]);
      if (wanted.length === 0) return asked;
      try {
        const won = await write({ create: wanted, put: [] });
        settle({ pending: false });
        let next = 0;
        return asked.map((one) => one && won[next++] === true);
      } catch (error) {
        settle(undefined);
        throw error;
      }
    },
    /** The record of a key. Throws bus-unavailable; idempotency-key-reused if it is unreadable, as its request may have been performed. */
    read: async ({ place }: KeyedRequest): Promise<Entry<IdempotencyRecord> | undefined> => {
      try {
        const found = await bucket().get(place);
        // The record expired, or its write is still under way.
        if (found === undefined && recent.peek(place)?.pending === false) recent.delete(place);
        return found;
      } catch (error) {
        if (!hasCode(error, "schema")) throw error;
        log.error({ err: error }, "an idempotency record cannot be read");
        throw keyReused("its record cannot be read; use a new key");
      }
    },
    /** Replaces the record that was read. False when the record has changed since. */
    update: ({ request: { place, ttlMs }, record }: NewRecord, revision: number): Promise<boolean> =>
      bucket().update(place, record, revision, { ttlMs }),
    /** Records the result of an attempt. Never throws: without a record a repeat is performed again, and its ids make that harmless. */
    note: async (record: NewRecord): Promise<void> => {
      await write({ create: [], put: [record] }).catch(() => {});
    },
    /** Remembers, in this process only, that the attempt was performed. */
    setPerformed: ({ place }: KeyedRequest, id: string): void => {
      recent.set(place, { pending: false, performed: id });
    },
    /** False also for attempts of other gateways, and for those of some time ago. */
    wasPerformed: ({ place }: KeyedRequest, id: string): boolean => recent.peek(place)?.performed === id,
  };
};

export const keyReused = (problem: string): HeraldError =>
  new HeraldError("idempotency-key-reused", `Idempotency-Key: ${problem}`);
