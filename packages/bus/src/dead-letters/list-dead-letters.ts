import { type DeadLetter, DeadLetterId, type DurableName, type PageOf, type PageRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { notConnected, toBusError } from "../bus-error.ts";
import { type Bus, type Connection, connectionOf } from "../connect.ts";
import { directRead, type Stored } from "../direct-read.ts";
import { deadLetterSubject, deadLetterSubjects, describeLetter } from "./describe-letter.ts";
import { readReplays } from "./replay-records.ts";

export const deadLetterStream = "PUSH_DLQ";

export type DeadLetterList = PageRequest & {
  /** Only those of this durable. */
  readonly durable?: DurableName | undefined;
};

/** The broker also sends the bodies, which are discarded: at most so many bytes are in transit. */
const bytesAtATime = 4 * 1_048_576;

/**
 * Dead letters, oldest first: their headers, never their bodies. A page costs a few reads by sequence, at any depth.
 * Throws HeraldError bus-unavailable, or validation-failed for an `after` that was not given out.
 */
export const listDeadLetters = async (bus: Bus, request: DeadLetterList): Promise<PageOf<DeadLetter>> => {
  const connection = connectionOf(bus);
  const filter = request.durable === undefined ? deadLetterSubjects : deadLetterSubject(request.durable);
  const { perPage } = request;
  if (request.by === "key") {
    const { rows, more } = await readRows(connection, filter, sequenceAfter(request.after), perPage);
    const data = await withReplays(connection, rows);
    return { data, next: more ? (data.at(-1)?.id ?? null) : null };
  }
  const { page } = request;
  const offset = (page - 1) * perPage;
  const bounds = await boundsOf(connection, filter);
  const from = offset < bounds.count ? await sequenceAt(connection, filter, offset, bounds) : undefined;
  const { rows } = from === undefined ? { rows: [] } : await readRows(connection, filter, from, perPage);
  const data = await withReplays(connection, rows);
  // A dead letter that arrives between the two reads must not contradict the count.
  const count = Math.max(bounds.count, data.length > 0 ? offset + data.length : 0);
  const last = Math.max(1, Math.ceil(count / perPage));
  const shown = data.length > 0 ? { from: offset + 1, to: offset + data.length } : { from: 0, to: 0 };
  return { data, pagination: { count, page, pages: last, last, ...shown } };
};

const sequenceAfter = (after: string): number => {
  if (after === "") return 1;
  if (DeadLetterId.safeParse(after).success) return Number(after) + 1;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of the answer before");
};

type Row = {
  readonly letter: DeadLetter;
  readonly sequence: number;
  readonly storedAt: Date;
  readonly pending: number;
};

const rowOf = (stored: Stored): Row => {
  const { sequence, storedAt, pending } = stored;
  return { letter: describeLetter(stored), sequence, storedAt, pending };
};

const readRows = async (
  connection: Connection,
  filter: string,
  from: number,
  count: number,
): Promise<{ rows: Row[]; more: boolean }> => {
  const rows: Row[] = [];
  let seq = from;
  for (;;) {
    const batch = count - rows.length;
    const query = { seq, batch, next_by_subj: filter, max_bytes: bytesAtATime };
    rows.push(...(await directRead(connection, deadLetterStream, query, rowOf)));
    const last = rows.at(-1);
    const more = last !== undefined && last.sequence >= seq && last.pending > 0;
    if (!more || rows.length >= count) return { rows, more };
    seq = last.sequence + 1;
  }
};

const withReplays = async (connection: Connection, rows: readonly Row[]): Promise<DeadLetter[]> => {
  const replays = await readReplays(connection, rows);
  return rows.map(({ letter, sequence }) => ({ ...letter, ...replays.get(sequence) }));
};

type Bounds = { readonly first: number; readonly last: number; readonly count: number };

const boundsOf = async ({ connected, jsm }: Connection, filter: string): Promise<Bounds> => {
  if (!connected) throw notConnected();
  try {
    const { state } = await jsm.streams.info(deadLetterStream, { subjects_filter: filter });
    const count = Object.values(state.subjects ?? {}).reduce((sum, subject) => sum + subject, 0);
    return { first: state.first_seq, last: state.last_seq, count };
  } catch (error) {
    throw toBusError(error);
  }
};

/**
 * The sequence of the match that has `offset` others before it. Without a filter that is a sum, and the first look confirms it;
 * else it is found between the bounds, each look halving them, since the broker says how many matches are behind a sequence.
 */
const sequenceAt = async (
  connection: Connection,
  filter: string,
  offset: number,
  { first, last, count }: Bounds,
): Promise<number> => {
  let [low, high] = [first, last];
  let guess = first + Math.floor((offset * (last - first + 1)) / count);
  while (low < high) {
    const query = { seq: guess, batch: 1, next_by_subj: filter };
    const [found] = await directRead(connection, deadLetterStream, query, ({ sequence, pending }) => ({
      sequence,
      pending,
    }));
    const before = found === undefined ? count : count - 1 - found.pending;
    if (found && before === offset) return found.sequence;
    if (found && before < offset) low = Math.max(guess, found.sequence) + 1;
    else high = guess - 1;
    guess = Math.floor((low + high) / 2);
  }
  return low;
};
