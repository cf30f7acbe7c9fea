import { HeraldError, hasCode, LRUCache } from "@herald/kit";
import { z } from "zod";
import { openBucket } from "./bucket.ts";
import { isNoResponders } from "./bus-error.ts";
import type { Bus, BusConnection } from "./connect.ts";
import { runBeside } from "./permit.ts";

/** From this delivery on, a message may be the cause of its failures: it is handled alone in its batch, and leaves a note meanwhile. */
export const suspectFromDelivery = 3;

/** A long-running suspect, such as the drain of a backlog, does not hold up others. */
const longMs = 10_000;
/** A cause that was found explains the deaths of this time. If there is a second one, it leaves a note again. */
const explainedMs = 60_000;
/** Chance may end a process once or twice just while it handles the same message alone. */
const maxDeathsAlone = 3;

/** Left in the bucket while a suspect is handled. `alone`: how often it began alone in its process. */
const Note = z.object({ alone: z.number().int() });

/**
 * Handles a message or request that may be the reason why processes died. A note that an earlier process left says that it died while it
 * handled the suspect: then nothing else begins in this process meanwhile, unless another has just been found to be the cause. Rejects with
 * `process-crashed`, without handling it, when processes died over it alone; a death beside other work may have another cause. Without a
 * broker there is no note, and no count.
 */
export const handleSuspect = async <Result>(
  connection: BusConnection,
  key: string,
  handle: () => Promise<Result>,
): Promise<Result> => {
  const { suspects } = connection;
  const { exclusion, gate, notes, running } = suspects;
  if (notes.has(key)) throw new HeraldError("service-unavailable", "an earlier try of the same is not finished");
  const note = noteOf(connection, key);
  notes.set(key, note.remove);
  let leave = () => {};
  let timer: NodeJS.Timeout | undefined;
  try {
    leave = await gate.enter("", 1);
    timer = setTimeout(leave, longMs);
    const alone = await note.leave();
    if (alone === undefined) return await runBeside(running, handle);
    connection.log.warn({ suspect: key, alone }, "a process ended while it handled this: it is handled alone");
    if (alone < maxDeathsAlone) {
      return await exclusion.alone(handle, {
        deaths: alone,
        isCleared: () => alone === 0 && performance.now() - suspects.foundAt < explainedMs,
        onAlone: async () => void (await note.write(alone + 1)),
        onLong: () => void note.write(alone),
      });
    }
    suspects.foundAt = performance.now();
    throw new HeraldError("process-crashed", `${alone} processes ended while they handled nothing else`);
  } catch (error) {
    // A sender that repeats its request must not end further processes.
    if (hasCode(error, "process-crashed")) notes.delete(key);
    throw error;
  } finally {
    clearTimeout(timer);
    leave();
    if (notes.delete(key)) await note.remove();
  }
};

/** Removes the notes of work that a stopping process abandons. */
export const removeNotes = async ({ suspects }: BusConnection): Promise<void> => {
  const removals = [...suspects.notes.values()];
  suspects.notes.clear();
  await Promise.all(removals.map((remove) => remove()));
};

/** A broker that stores no notes must not stop the work: then processes die as often as messages are delivered. */
const noteOf = (connection: BusConnection, key: string) => {
  const bucket = openBucket(connection as unknown as Bus, "push_status", Note);
  const attempt = async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await work();
    } catch (err) {
      connection.log.warn({ err, suspect: key }, "could not note that a process handles this");
      return undefined;
    }
  };
  return {
    /** Resolves to the count of an earlier note; undefined: there was none. */
    leave: () =>
      attempt(async () =>
        (await bucket.create(key, { alone: 0 })) ? undefined : (await bucket.get(key))?.value.alone,
      ),
    write: (alone: number) => attempt(() => bucket.put(key, { alone })),
    remove: async () => {
      await attempt(() => bucket.delete(key));
    },
  };
};

/** So many requests without a reply make a suspect: the first may have met a restart. */
const suspectFromUnanswered = 2;

/** Whether a service took a request and did not reply. */
const isUnanswered = (error: unknown): boolean =>
  hasCode(error, "service-unavailable") && error.cause !== undefined && !isNoResponders(error.cause);

/** Items that got no reply. A forgotten one is counted from the start. */
const maxUnanswered = 10_000;

/** For a sender that repeats requests on its own: counts how often the request about an item, known by its id, got no reply. */
export const createUnanswered = () => {
  const counts = new LRUCache<string, number>({ max: maxUnanswered });
  return {
    /** Empty while all requests get replies: then no item is a suspect. */
    counts: counts as Pick<typeof counts, "size">,
    /** Whether the item is requested separately, with its id as `suspect`. */
    isSuspect: (id: string): boolean => (counts.get(id) ?? 0) >= suspectFromUnanswered,
    count: (id: string, error: unknown): void => {
      if (isUnanswered(error)) counts.set(id, (counts.get(id) ?? 0) + 1);
    },
  };
};
