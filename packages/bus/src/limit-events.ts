import { eventTypeOf } from "@herald/contracts";
import { type Repeating, repeat } from "@herald/kit";
import type { StreamInfo } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { directRead } from "./direct-read.ts";
import { consumedStream } from "./permissions/index.ts";
import { planEventRemoval, type Removal, type SubjectUsage } from "./plan-event-removal.ts";
import { durablesOf, positionOf } from "./stream-position.ts";

/** From this on there is to be room again: at 8 GiB the last fifth takes minutes to fill, however quick. */
const limitShare = 0.8;
/** Then it is cleared down to this: seldom enough, and not so much at once that the broker is held up. */
const targetShare = 0.75;
const defaultIntervalMs = 2_000;

/** Subjects whose events are weighed: those with the most; of all others the mean of the stream is taken. */
const maxSampledSubjects = 200;
const sampledEvents = 16;
const sampledBytes = 256 * 1_024;
/** The broker adds these headers to a read message; the stored message does not contain them. */
const readHeaders = /^Nats-(?:Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence|UpTo-Sequence)$/;
/** Between a header's name and its value, and behind it. */
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
export const limitEventsPerProject = (bus: Bus, everyMs = defaultIntervalMs): Repeating => {
  const connection = connectionOf(bus);
  return repeat("share the room of the stream of events", everyMs, connection.log, async (signal) => {
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

/** What each project holds of each kind. The broker counts messages and not their bytes, so some are looked at. */
const estimateUsage = async (connection: Connection): Promise<SubjectUsage[]> => {
  const { state } = await connection.jsm.streams.info(stream, { subjects_filter: "push.evt.v1.>" });
  const counted = Object.entries(state.subjects ?? {}).sort(([, one], [, other]) => other - one);
  const mean = state.bytes / Math.max(1, state.messages);
  const held: SubjectUsage[] = [];
  for (const [index, [subject, messages]] of counted.entries()) {
    const { projectId, type } = eventTypeOf(subject) ?? {};
    if (projectId === undefined || type === undefined) continue;
    const bytes = index < maxSampledSubjects ? await meanBytes(connection, subject, state, mean) : mean;
    held.push({ subject, project: projectId, messages, bytes, spare: /^io\.herald\.(?:device|topic)\./.test(type) });
  }
  // What all of it takes is known, whatever the disk adds to each.
  const scale = state.bytes / held.reduce((sum, { messages, bytes }) => sum + messages * bytes, 0);
  return held.map((one) => ({ ...one, bytes: one.bytes * scale }));
};

const meanBytes = async (
  connection: Connection,
  subject: string,
  { first_seq, last_seq }: StreamInfo["state"],
  otherwise: number,
): Promise<number> => {
  // From somewhere, and from the beginning where that was behind its last.
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

/** Every durable of Herald's own has had, and settled, what comes before. */
const settledSequence = async ({ jsm }: Connection): Promise<number> => {
  const { state } = await jsm.streams.info(stream);
  const positions = await Promise.all(
    durablesOf(stream).map(async (durable) => positionOf(await jsm.consumers.info(stream, durable), state)),
  );
  return Math.min(...positions) + 1;
};

/** Resolves to the number of removed events. Keeps events that statistics or webhooks have not read yet. */
const remove = async (
  connection: Connection,
  { subject, keep, spare }: Removal,
  state: StreamInfo["state"],
  consumed: number,
): Promise<number> => {
  const cut = await sequenceBefore(connection, subject, keep, state);
  const seq = spare ? cut : Math.min(cut, consumed);
  if (seq <= state.first_seq) return 0;
  return (await connection.jsm.streams.purge(stream, { filter: subject, seq })).purged;
};

/** The sequence from which on a subject has `keep` messages. */
const sequenceBefore = async (
  connection: Connection,
  subject: string,
  keep: number,
  { first_seq, last_seq }: StreamInfo["state"],
): Promise<number> => {
  if (keep === 0) return last_seq + 1;
  let [low, high] = [first_seq, last_seq];
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const query = { seq: middle, batch: 1, next_by_subj: subject };
    // Those from here on: the one that is read, and those behind it.
    const [left = 0] = await directRead(connection, stream, query, ({ pending }) => pending + 1);
    if (left > keep) low = middle + 1;
    else high = middle;
  }
  return low;
};
