import { type DeadLetter, ReplayRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { openBucket } from "../bucket.ts";
import type { Bus, Connection } from "../connect.ts";
import { directRead, type Stored } from "../direct-read.ts";
import { readJson } from "../parse-json.ts";

type LetterPosition = Pick<Stored, "sequence" | "storedAt">;

const bucketName = "push_replays";
const subjectOf = (sequence: number | string) => `$KV.${bucketName}.${sequence}`;

/** Whether a record belongs to this dead letter, and not to one with the same sequence before the stream was recreated. */
const isOf = (record: ReplayRecord, { storedAt }: LetterPosition): boolean =>
  record.storedAt === storedAt.toISOString();

const shown = ({ times, replayedAt }: ReplayRecord): Pick<DeadLetter, "replays" | "replayed_at"> => ({
  replays: times,
  replayed_at: replayedAt,
});

/** The recorded replays of up to 1,000 dead letters, by sequence, in one read. */
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

/** Undefined when the key was deleted or is invalid: the letter is shown without its replays. */
const recordOf = (body: Uint8Array): ReplayRecord | undefined => ReplayRecord.safeParse(readJson(body)).data;

/** An invalid record counts as none and is overwritten. */
const unreadable = (error: unknown): null => {
  if (error instanceof HeraldError && error.code === "schema") return null;
  throw error;
};

/** Concurrent replays of one dead letter conflict; five conflicts in a row do not happen. */
const tries = 5;

/** Records a replay. An attempt counts once, however often it is recorded. */
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
    "the dead letter was replayed, but the replay could not be recorded: others replay it too",
    {
      retryAfterSeconds: 1,
    },
  );
};
