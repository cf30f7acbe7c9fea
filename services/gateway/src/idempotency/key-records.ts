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
const tryBytes = 64;

/** `performed`: the id of the attempt that this gateway performed. `failed`: its tries that ended here, which the broker may have stored or not. */
type State = { readonly pending: boolean; readonly performed?: string; readonly failed?: readonly string[] };

/** Of a key. Any of them may be the one that the broker has stored: a client that does not back off makes dozens while there is no leader. */
const maxFailed = 100;

/** One try of an attempt: a later one of the same attempt has another time. */
const tryOf = ({ id, at, triedAt = at }: IdempotencyRecord): string => `${id}/${triedAt}`;

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
    sizeOf: ({ failed = [] }) => stateBytes + failed.length * tryBytes,
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

  const note = async (record: NewRecord): Promise<void> => {
    await write({ create: [], put: [record] }).catch(() => {});
  };
  const setFailed = ({ request, record }: NewRecord): void => {
    const earlier = recent.peek(request.place)?.failed ?? [];
    recent.set(request.place, { pending: false, failed: [tryOf(record), ...earlier].slice(0, maxFailed) });
  };

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
      const wanted = records.filter((_, at) => asked[at]);
      if (wanted.length === 0) return asked;
      try {
        const won = await write({ create: wanted, put: [] });
        for (const { request } of wanted) recent.set(request.place, { pending: false });
        let next = 0;
        return asked.map((one) => one && won[next++] === true);
      } catch (error) {
        // The broker may have stored them, or may still do so.
        for (const one of wanted) setFailed(one);
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
    /** Begins another try: replaces the record that was read. False when the record has changed since. Throws bus-unavailable. */
    update: async (next: NewRecord, revision: number): Promise<boolean> => {
      const { place, ttlMs } = next.request;
      try {
        return await bucket().update(place, next.record, revision, { ttlMs });
      } catch (error) {
        setFailed(next);
        throw error;
      }
    },
    /** Records the result of an attempt. Never throws: without a record a repeat is performed again, and its ids make that harmless. */
    note,
    /** Frees the key of a try that failed: for this gateway at once, for others when the returned promise resolves. Never throws. */
    release: ({ request, record }: NewRecord): Promise<void> => {
      setFailed({ request, record });
      return note({ request, record: { ...record, released: true } });
    },
    /** The tries of a request that failed at this gateway, for {@link isTryOf}; those that are remembered. */
    failedTries: ({ place }: KeyedRequest): readonly string[] => recent.peek(place)?.failed ?? [],
    /** Remembers, in this process only, that the attempt was performed. */
    setPerformed: ({ place }: KeyedRequest, id: string): void => {
      recent.set(place, { pending: false, performed: id });
    },
    /** False also for attempts of other gateways, and for those of some time ago. */
    wasPerformed: ({ place }: KeyedRequest, id: string): boolean => recent.peek(place)?.performed === id,
  };
};

/** Whether the record is as one of the tries left it: no later one has begun. */
export const isTryOf = (record: IdempotencyRecord, tries: readonly string[]): boolean => tries.includes(tryOf(record));

export const keyReused = (problem: string): HeraldError =>
  new HeraldError("idempotency-key-reused", `Idempotency-Key: ${problem}`);
