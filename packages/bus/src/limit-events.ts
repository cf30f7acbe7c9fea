import { eventTypeOf } from "@herald/contracts";
import { type PeriodicTask, runEvery } from "@herald/kit";
import type { StreamInfo } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { consumedStream, durablesOf } from "./permissions/index.ts";
import { directRead } from "./read-stream.ts";
import { positionOf } from "./report-status.ts";

/** Above this share of the limit, events are removed: at 8 GiB even the fastest load takes minutes to fill the last fifth. */
const limitShare = 0.8;
/** Events are removed down to this share: rarely enough, and few enough at once not to delay the broker. */
const targetShare = 0.75;
const defaultIntervalMs = 2_000;

/** The size of events is sampled for the largest subjects only; the others count with the mean of the stream. */
const maxSampledSubjects = 200;
const sampledEvents = 16;
const sampledBytes = 256 * 1_024;
/** The broker adds these headers to a read message; the stored message does not contain them. */
const readHeaders = /^Nats-(?:Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence|UpTo-Sequence)$/;
/** The separators between and after a header's name and value. */
const headerBytes = 4;

const bytesOf = (headers: MsgHdrs): number =>
  headers
    .keys()
    .filter((name) => !readHeaders.test(name))
    .reduce((sum, name) => sum + name.length + headers.get(name).length + headerBytes, 0);

const stream = consumedStream;

/**
 * Prevents one project from filling the stream of events. Before the stream is full and would remove the oldest events of all projects,
 * projects above their share lose their own oldest events. Any number of processes may run it.
 */
export const limitEventsPerProject = (bus: Bus, everyMs = defaultIntervalMs): PeriodicTask => {
  const connection = connectionOf(bus);
  return runEvery("share the room of the stream of events", everyMs, connection.log, async (signal) => {
    if (!connection.connected) return;
    const { config, state } = await connection.jsm.streams.info(stream);
    if (config.max_bytes <= 0 || state.bytes <= config.max_bytes * limitShare) return;
    const removals = planEventRemoval(await estimateUsage(connection), config.max_bytes * targetShare);
    const consumed = await settledSequence(connection);
    let removed = 0;
    for (const removal of removals) if (!signal.aborted) removed += await remove(connection, removal, state, consumed);
    connection.telemetry.removed.add(removed, { stream });
    if (removed === 0) return;
    const projects = [...new Set(removals.map(({ subject }) => eventTypeOf(subject)?.projectId ?? subject))];
    connection.log.warn(
      { stream, projects, removed },
      "removed the oldest events of projects that hold more than their share",
    );
  });
};

/** Estimates the size of each subject. The broker counts messages but not their bytes, so this reads a sample. */
const estimateUsage = async (connection: BusConnection): Promise<SubjectUsage[]> => {
  const { state } = await connection.jsm.streams.info(stream, { subjects_filter: "push.evt.v1.>" });
  const counted = Object.entries(state.subjects ?? {}).sort(([, one], [, other]) => other - one);
  const mean = state.bytes / Math.max(1, state.messages);
  const stored: SubjectUsage[] = [];
  for (const [index, [subject, messages]] of counted.entries()) {
    const { projectId, type } = eventTypeOf(subject) ?? {};
    if (projectId === undefined || type === undefined) continue;
    const bytes = index < maxSampledSubjects ? await meanBytes(connection, subject, state, mean) : mean;
    stored.push({ subject, project: projectId, messages, bytes, spare: /^io\.herald\.(?:device|topic)\./.test(type) });
  }
  // The size of the whole stream is known and includes the overhead of each message on disk.
  const scale = state.bytes / stored.reduce((sum, { messages, bytes }) => sum + messages * bytes, 0);
  return stored.map((one) => ({ ...one, bytes: one.bytes * scale }));
};

const meanBytes = async (
  connection: BusConnection,
  subject: string,
  { first_seq, last_seq }: StreamInfo["state"],
  otherwise: number,
): Promise<number> => {
  // Sample from a random sequence, or from the first if the random one is behind the subject's last message.
  for (const seq of [first_seq + Math.floor(Math.random() * (last_seq - first_seq + 1)), first_seq]) {
    const query = { seq, batch: sampledEvents, max_bytes: sampledBytes, next_by_subj: subject };
    const sizes = await directRead(
      connection,
      stream,
      query,
      ({ headers, body }) => subject.length + body.length + bytesOf(headers),
    );
    if (sizes.length > 0) return sizes.reduce((sum, one) => sum + one, 0) / sizes.length;
  }
  return otherwise;
};

/** The first sequence that one of Herald's own durables has not settled yet. */
const settledSequence = async ({ jsm }: BusConnection): Promise<number> => {
  const { state } = await jsm.streams.info(stream);
  const positions = await Promise.all(
    durablesOf(stream).map(async (durable) => positionOf(await jsm.consumers.info(stream, durable), state)),
  );
  return Math.min(...positions) + 1;
};

/** Resolves to the number of removed events. Keeps events that statistics or webhooks have not read yet. */
const remove = async (
  connection: BusConnection,
  { subject, keep, spare }: Removal,
  { first_seq, last_seq }: StreamInfo["state"],
  consumed: number,
): Promise<number> => {
  // Searches the sequence from which on the subject has `keep` messages.
  let [low, high] = [first_seq, spare ? last_seq + 1 : Math.min(consumed, last_seq + 1)];
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const query = { seq: middle, batch: 1, next_by_subj: subject };
    // This message and all that follow it.
    const [left = 0] = await directRead(connection, stream, query, ({ pending }) => pending + 1);
    if (left > keep) low = middle + 1;
    else high = middle;
  }
  if (low <= first_seq) return 0;
  return (await connection.jsm.streams.purge(stream, { filter: subject, seq: low })).purged;
};

/** The events of one type in one project. */
export type SubjectUsage = {
  readonly subject: string;
  readonly project: string;
  readonly messages: number;
  /** The estimated size of one event. */
  readonly bytes: number;
  /** Only readers of events need these events; Herald's statistics do not. */
  readonly spare: boolean;
};

/** Removes all but the newest `keep` events of a subject. */
export type Removal = { readonly subject: string; readonly keep: number; readonly spare: boolean };

/** The bytes that one project may keep, so that all projects together keep `target`. Projects below this share keep everything. */
const shareOf = (stored: readonly number[], target: number): number => {
  const ascending = stored.toSorted((one, other) => one - other);
  let left = target;
  for (const [index, bytes] of ascending.entries()) {
    const equal = left / (ascending.length - index);
    if (bytes > equal) return equal;
    left -= bytes;
  }
  return Number.POSITIVE_INFINITY;
};

const sum = (all: readonly SubjectUsage[]): number => all.reduce((bytes, one) => bytes + one.messages * one.bytes, 0);

/**
 * Plans which events to remove so that `target` bytes stay. Each project above its share loses its own oldest events, spare ones first;
 * the others keep everything. A share is not fixed: a single project may fill the whole stream.
 */
export const planEventRemoval = (stored: readonly SubjectUsage[], target: number): Removal[] => {
  const projects = [...Map.groupBy(stored, ({ project }) => project).values()];
  const share = shareOf(projects.map(sum), target);
  return projects.flatMap((own) => {
    let excess = sum(own) - share;
    const removals: Removal[] = [];
    // Largest subjects first, to make few removals of many events.
    const order = own.toSorted((one, other) => Number(other.spare) - Number(one.spare) || sum([other]) - sum([one]));
    for (const { subject, messages, bytes, spare } of order) {
      if (excess <= 0) break;
      const removed = Math.min(messages, Math.ceil(excess / bytes));
      excess -= removed * bytes;
      removals.push({ subject, keep: messages - removed, spare });
    }
    return removals;
  });
};
