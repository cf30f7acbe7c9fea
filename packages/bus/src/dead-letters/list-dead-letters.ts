import {
  contractOf,
  type DeadLetter,
  DeadLetterId,
  type DurableName,
  headerNames,
  NotificationId,
  type PageOf,
  type PageRequest,
  ProjectId,
  ReplayRecord,
} from "@herald/contracts";
import { HeraldError, hasCode, notFound } from "@herald/kit";
import type { StreamInfo } from "@nats-io/jetstream";
import { openBucket } from "../bucket.ts";
import { type Bus, type BusConnection, connectionOf } from "../connect.ts";
import { brokerHeaders, keptPrefix, readJson, timeOf } from "../message-format.ts";
import { countOf, directRead, type Stored, streamState } from "../read-stream.ts";

const deadLetterStream = "PUSH_DLQ";

export type DeadLetterList = PageRequest & {
  /** Only dead letters of this durable. */
  readonly durable?: DurableName | undefined;
  /** Only this project's, for a walk by key. No subject contains the project: a page reads a bounded number and may be short or empty. */
  readonly projectId?: ProjectId | undefined;
};

const maxReadForProject = 500;

/** Limits the bytes in transit: the broker also sends the bodies, which the bus discards. */
const bytesAtATime = 4 * 1_048_576;

/**
 * Lists dead letters, oldest first, with their headers but never their bodies. A page costs a few reads by sequence, at any depth.
 * Throws HeraldError bus-unavailable, or validation-failed for an `after` that is not a dead letter's id.
 */
export const listDeadLetters = async (bus: Bus, request: DeadLetterList): Promise<PageOf<DeadLetter>> => {
  const connection = connectionOf(bus);
  const filter = request.durable === undefined ? deadLetterSubjects : deadLetterSubject(request.durable);
  const { perPage, projectId } = request;
  if (request.by === "key") {
    const toRead = projectId === undefined ? perPage : maxReadForProject;
    const { rows, more } = await readRows(connection, filter, sequenceAfter(request.after), toRead);
    const found = projectId === undefined ? rows : rows.filter(({ letter }) => letter.project_id === projectId);
    const shown = found.slice(0, perPage);
    const isCut = found.length > perPage;
    const next = isCut || more ? ((isCut ? shown : rows).at(-1)?.letter.id ?? null) : null;
    return { data: await withReplays(connection, shown), next };
  }
  const { page } = request;
  const offset = (page - 1) * perPage;
  const state = await streamState(connection, deadLetterStream, filter);
  const counted = countOf(state);
  const from = offset < counted ? await sequenceAt(connection, filter, offset, state) : undefined;
  const { rows } = from === undefined ? { rows: [] } : await readRows(connection, filter, from, perPage);
  const data = await withReplays(connection, rows);
  // A dead letter that arrives between the two reads must not contradict the count.
  const count = Math.max(counted, data.length > 0 ? offset + data.length : 0);
  const last = Math.max(1, Math.ceil(count / perPage));
  const shown = data.length > 0 ? { from: offset + 1, to: offset + data.length } : { from: 0, to: 0 };
  return { data, pagination: { count, page, pages: last, last, ...shown } };
};

const sequenceAfter = (after: string): number => {
  if (after === "") return 1;
  if (DeadLetterId.safeParse(after).success) return Number(after) + 1;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of the answer before");
};

const rowOf = (stored: Stored) => {
  const { sequence, storedAt, pending } = stored;
  return { letter: describeLetter(stored), sequence, storedAt, pending };
};
type Row = ReturnType<typeof rowOf>;

const readRows = async (connection: BusConnection, filter: string, from: number, count: number) => {
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

const withReplays = async (connection: BusConnection, rows: readonly Row[]): Promise<DeadLetter[]> => {
  const replays = await readReplays(connection, rows);
  return rows.map(({ letter, sequence }) => ({ ...letter, ...replays.get(sequence) }));
};

/**
 * The sequence of the match that has `offset` others before it. Without a filter this is a sum, which the first read confirms. With a
 * filter a binary search finds it, because the broker says how many matches follow a sequence.
 */
const sequenceAt = async (connection: BusConnection, filter: string, offset: number, state: StreamInfo["state"]) => {
  const count = countOf(state);
  let [low, high] = [state.first_seq, state.last_seq];
  let guess = low + Math.floor((offset * (high - low + 1)) / count);
  while (low < high) {
    const query = { seq: guess, batch: 1, next_by_subj: filter };
    const [found] = await directRead(connection, deadLetterStream, query, ({ body, ...place }) => place);
    const before = found === undefined ? count : count - 1 - found.pending;
    if (found && before === offset) return found.sequence;
    if (found && before < offset) low = Math.max(guess, found.sequence) + 1;
    else high = guess - 1;
    guess = Math.floor((low + high) / 2);
  }
  return low;
};

const deadLetterSubjects = "push.dlq.v1.>";
const deadLetterSubject = (durable: string): string => `push.dlq.v1.${durable}`;

/** Describes a dead letter by its headers, never its body. The result matches its schema for any content of the headers. */
export const describeLetter = ({ sequence, subject, headers, storedAt }: Stored): DeadLetter => {
  const origin = headers.get(headerNames.deadSubject);
  const contract = contractOf(origin);
  const ids = [...origin.split("."), ...headers.get(keptPrefix + brokerHeaders.messageId).split("/")];
  const projectId = ids.find((part) => ProjectId.safeParse(part).success) as ProjectId | undefined;
  const notificationId = ids.find((part) => NotificationId.safeParse(part).success) as NotificationId | undefined;
  const replayOf = DeadLetterId.safeParse(headers.get(headerNames.replayOf)).data;
  return {
    id: String(sequence),
    durable: subject.slice(deadLetterSubject("").length),
    ...(contract ? { message: contract.name } : {}),
    ...(projectId ? { project_id: projectId } : {}),
    ...(notificationId ? { notification_id: notificationId } : {}),
    subject: origin,
    reason: headers.get(headerNames.deadReason),
    detail: headers.get(headerNames.deadDetail),
    deliveries: Math.max(0, Math.trunc(Number(headers.get(headerNames.deadDeliveries)) || 0)),
    died_at: timeOf(headers.get(headerNames.deadAt), storedAt).toISOString(),
    ...(replayOf ? { replay_of: replayOf } : {}),
  };
};

/** A dead letter by its id, without its body. Throws HeraldError dead-letter-not-found or bus-unavailable. */
export const getDeadLetter = async (bus: Bus, id: string): Promise<DeadLetter> => {
  const connection = connectionOf(bus);
  const stored = await readDeadLetter(connection, id);
  const replays = await readReplays(connection, [stored]);
  return { ...describeLetter(stored), ...replays.get(stored.sequence) };
};

/** A dead letter with its body. */
export const readDeadLetter = async (connection: BusConnection, id: string): Promise<Stored> => {
  const sequence = DeadLetterId.safeParse(id).success ? Number(id) : undefined;
  if (sequence !== undefined) {
    // If this dead letter is gone, the broker sends the next one.
    const query = { seq: sequence, batch: 1, next_by_subj: deadLetterSubjects };
    const [stored] = await directRead(connection, deadLetterStream, query, (message) => message);
    if (stored?.sequence === sequence) return stored;
  }
  throw notFound("dead-letter-not-found", "id", "dead letters are kept for 30 days");
};

type LetterPosition = Pick<Stored, "sequence" | "storedAt">;

const bucketName = "push_replays";
const subjectOf = (sequence: number) => `$KV.${bucketName}.${sequence}`;

/** Whether a record belongs to this dead letter. A recreated stream uses the same sequences again. */
const isOf = (record: ReplayRecord, { storedAt }: LetterPosition): boolean =>
  record.storedAt === storedAt.toISOString();

type Replays = Pick<DeadLetter, "replays" | "replayed_at">;
const shown = ({ times, replayedAt }: ReplayRecord): Replays => ({ replays: times, replayed_at: replayedAt });

/** The recorded replays of up to 1,000 dead letters, by sequence, in one read. */
const readReplays = async (connection: BusConnection, letters: readonly LetterPosition[]) => {
  const known = new Map<number, Replays>();
  if (letters.length === 0) return known;
  const byKey = new Map(letters.map((letter) => [subjectOf(letter.sequence), letter]));
  await directRead(connection, `KV_${bucketName}`, { multi_last: [...byKey.keys()] }, ({ subject, body }) => {
    const letter = byKey.get(subject);
    // Undefined when the key was deleted or is invalid: the letter is shown without its replays.
    const record = ReplayRecord.safeParse(readJson(body)).data;
    if (letter && record && isOf(record, letter)) known.set(letter.sequence, shown(record));
  });
  return known;
};

/** An invalid record counts as none and is overwritten. */
const unreadable = (error: unknown): null => {
  if (hasCode(error, "schema")) return null;
  throw error;
};

/** Concurrent replays of one dead letter conflict; five conflicts in a row do not happen. */
const tries = 5;

/** Records a replay. An attempt counts once, however often it is recorded. */
export const recordReplay = async (bus: Bus, letter: LetterPosition, attempt: string): Promise<Replays> => {
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
    { retryAfterSeconds: 1 },
  );
};
