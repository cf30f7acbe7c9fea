import { type DeadLetter, ReplayRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { openBucket } from "../bucket.ts";
import type { Bus, Connection } from "../connect.ts";
import { directRead, type Stored } from "../direct-read.ts";
import { readJson } from "../parse-json.ts";

type LetterPosition = Pick<Stored, "sequence" | "storedAt">;

const bucketName = "push_replays";
const subjectOf = (sequence: number | string) => `$KV.${bucketName}.${sequence}`;

/** Whether a record is about this dead letter, and not about one that had its sequence before the stream was made anew. */
const isOf = (record: ReplayRecord, { storedAt }: LetterPosition): boolean =>
  record.storedAt === storedAt.toISOString();

const shown = ({ times, replayedAt }: ReplayRecord): Pick<DeadLetter, "replays" | "replayed_at"> => ({
  replays: times,
  replayed_at: replayedAt,
});

/** What is remembered of the replays of up to 1,000 dead letters, by sequence: one read for all. */
export const readReplays = async (
  connection: Connection,
  letters: readonly LetterPosition[],
): Promise<Map<number, ReturnType<typeof shown>>> => {
  const known = new Map<number, ReturnType<typeof shown>>();
  if (letters.length === 0) return known;
  const byKey = new Map(letters.map((letter) => [subjectOf(letter.sequence), letter]));
  await directRead(connection, `KV_${bucketName}`, { multi_last: [...byKey.keys()] }, ({ subject, body }) => {
    const letter = byKey.get(subject);
    const record = recordOf(body);
    if (letter && record && isOf(record, letter)) known.set(letter.sequence, shown(record));
  });
  return known;
};

/** Undefined where somebody deleted the key by hand, or wrote what is no record: the letter is shown without its replays. */
const recordOf = (body: Uint8Array): ReplayRecord | undefined => ReplayRecord.safeParse(readJson(body)).data;

/** What nobody can read counts nothing, and is written over. */
const unreadable = (error: unknown): null => {
  if (error instanceof HeraldError && error.code === "schema") return null;
  throw error;
};

/** Two who replay the same dead letter at the same time meet here; more than a few times in a row they do not. */
const tries = 5;

/** Remembers that a dead letter was published again. The same attempt counts once, however often it is noted. */
export const recordReplay = async (
  bus: Bus,
  letter: LetterPosition,
  attempt: string,
): Promise<ReturnType<typeof shown>> => {
  const bucket = openBucket(bus, bucketName, ReplayRecord);
  const key = String(letter.sequence);
  for (let tried = 0; tried < tries; tried++) {
    const found = await bucket.get(key).catch(unreadable);
    const earlier = found && isOf(found.value, letter) ? found.value : undefined;
    if (earlier?.attempt === attempt) return shown(earlier);
    const record: ReplayRecord = {
      storedAt: letter.storedAt.toISOString(),
      times: (earlier?.times ?? 0) + 1,
      replayedAt: new Date().toISOString(),
      attempt,
    };
    if (found === null) await bucket.put(key, record);
    else if (!(found ? await bucket.update(key, record, found.revision) : await bucket.create(key, record))) continue;
    return shown(record);
  }
  throw new HeraldError(
    "bus-unavailable",
    "the replay is made, but could not be noted: others replay the same dead letter",
    {
      retryAfterSeconds: 1,
    },
  );
};
