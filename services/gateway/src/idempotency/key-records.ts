import { hash } from "node:crypto";
import type { Bucket, Entry, NewEntry } from "@herald/bus";
import type { IdempotencyRecord } from "@herald/contracts";
import { createByteCache, createGroupCommit, HeraldError, type Logger } from "@herald/kit";

/** A request under an Idempotency-Key. */
export type KeyedRequest = {
  /** Where its record is: a hash of owner, route and key. */
  readonly place: string;
  /** A project, or the administration. */
  readonly owner: string;
  /** A hash of its body. */
  readonly body: string;
  /** For how long its record is kept, in ms; absent: as long as any. */
  readonly ttlMs?: number | undefined;
};

/** What is to be written of a request. */
export type NewRecord = { readonly request: KeyedRequest; readonly record: IdempotencyRecord };

export type KeyRecords = {
  /**
   * Takes keys for first tries: in order, whether each is this one's now; a key that another has leaves the others unaffected. Throws
   * bus-unavailable, after which any of them may be taken.
   */
  readonly create: (records: readonly NewRecord[]) => Promise<boolean[]>;
  /** What is known of a key. Throws bus-unavailable, and idempotency-key-reused where it cannot be read: its request may have been carried out. */
  readonly read: (request: KeyedRequest) => Promise<Entry<IdempotencyRecord> | undefined>;
  /** Writes onto what was read. False where somebody else has written since. */
  readonly update: (record: NewRecord, revision: number) => Promise<boolean>;
  /** Notes what became of a try. Never throws: what is not noted costs a repeat its shortcut, and ids make the repeat harmless. */
  readonly note: (record: NewRecord) => Promise<void>;
};

/**
 * What is written while a write is under way goes together in the next: the keys of new requests and the outcomes of those before. More
 * than one at a time would be more and smaller ones.
 */
const writes = { most: 256, concurrent: 1 };

type Write = { readonly create: readonly NewRecord[]; readonly put: readonly NewRecord[] };

/** Some ten thousand keys: those that are repeated are mostly repeated soon. */
const recentBytes = 4 * 1_048_576;
const stateBytes = 64;

type State = { readonly pending: boolean };

/** 128 bits: by chance two requests never share them, and whoever looked for two that do could only confuse their own project. */
export const digest = (text: string): string => hash("sha256", text, "buffer").subarray(0, 16).toString("base64url");

export const createKeyRecords = (bucket: () => Bucket<IdempotencyRecord>, log: Logger): KeyRecords => {
  /**
   * Keys that this gateway knows to be taken. One of them in a batch would refuse the whole batch, at the cost of all whose keys are in
   * it; so who sends the same key again and again is told by a read.
   */
  const recent = createByteCache<string, State>({
    name: "idempotency-keys",
    maxBytes: recentBytes,
    sizeOf: () => stateBytes,
  });
  const entryOf = ({ request: { place, ttlMs }, record }: NewRecord): NewEntry<IdempotencyRecord> => ({
    key: place,
    value: record,
    ...(ttlMs === undefined ? {} : { ttlMs }),
  });
  const write = createGroupCommit<Write, boolean[]>(async (group) => {
    const create = group.flatMap((one) => one.create);
    // The last of a key is what counts, and the only one that is written.
    const last = new Map(group.flatMap((one) => one.put).map((one) => [one.request.place, one]));
    try {
      const put = [...last.values()].map(entryOf);
      const won = (await bucket().writeAll({ create: create.map(entryOf), put })).values();
      return group.map((one) => one.create.map(() => won.next().value === true));
    } catch (err) {
      if (last.size > 0) log.warn({ err, records: last.size }, "idempotency records could not be completed");
      throw err;
    }
  }, writes);

  return {
    create: async (records) => {
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
    read: async ({ place }) => {
      try {
        const found = await bucket().get(place);
        // Its time has ended, or it is just being written.
        if (found === undefined && recent.peek(place)?.pending === false) recent.delete(place);
        return found;
      } catch (error) {
        if (!(error instanceof HeraldError && error.code === "schema")) throw error;
        log.error({ err: error }, "an idempotency record cannot be read");
        throw keyReused("what is known of it cannot be read; use a new key");
      }
    },
    update: ({ request: { place, ttlMs }, record }, revision) =>
      bucket().update(place, record, revision, ttlMs === undefined ? {} : { ttlMs }),
    note: async (record) => {
      await write({ create: [], put: [record] }).catch(() => {});
    },
  };
};

export const keyReused = (problem: string): HeraldError =>
  new HeraldError("idempotency-key-reused", `Idempotency-Key: ${problem}`);
