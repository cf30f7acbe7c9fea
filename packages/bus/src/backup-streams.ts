import type { StreamConfig, StreamInfo } from "@nats-io/jetstream";
import { createInbox, type Msg } from "@nats-io/transport-node";
import { type Bus, type BusConnection, connectionOf } from "./connect.ts";
import { type EnsureOptions, wantedStreams } from "./ensure-streams.ts";

/** What the backup of a stream begins with: a frame of JSON. Its chunks follow; a frame that is this text ends it. */
type StreamHeader = { readonly config: StreamConfig; readonly state: StreamInfo["state"] };
const endOfStream = Buffer.from("end of stream");

/** The broker answers when it has read or written a chunk. */
const timeoutMs = 60_000;
const chunkBytes = 512 * 1_024;

const request = async <Answer>({ nc }: BusConnection, subject: string, body: object): Promise<Answer> =>
  answerOf<Answer>(subject, await nc.request(subject, JSON.stringify(body), { timeout: timeoutMs }));

const answerOf = <Answer>(subject: string, message: Msg): Answer => {
  const answer = message.json<Answer & { error?: { description: string } }>();
  if (answer.error) throw new Error(`the broker refuses ${subject}: ${answer.error.description}`);
  return answer;
};

const allStreams = async ({ jsm }: BusConnection): Promise<StreamInfo[]> => {
  const found: StreamInfo[] = [];
  for await (const info of jsm.streams.list()) found.push(info);
  return found;
};

/**
 * All streams with their messages and consumers, and so all buckets, as frames, of which the first names the streams. What is in memory
 * alone is left out.
 */
export const backUpStreams = async function* (bus: Bus): AsyncGenerator<Uint8Array> {
  const connection = connectionOf(bus);
  const names = (await allStreams(connection)).flatMap(({ config }) =>
    config.storage === "memory" ? [] : config.name,
  );
  yield Buffer.from(JSON.stringify(names));
  for (const name of names) yield* snapshot(connection, name);
};

const snapshot = async function* (connection: BusConnection, name: string): AsyncGenerator<Uint8Array> {
  const inbox = createInbox();
  const chunks = connection.nc.subscribe(inbox);
  try {
    const header = await request<StreamHeader>(connection, `$JS.API.STREAM.SNAPSHOT.${name}`, {
      deliver_subject: inbox,
      chunk_size: chunkBytes,
    });
    yield Buffer.from(JSON.stringify({ config: header.config, state: header.state } satisfies StreamHeader));
    for await (const chunk of chunks) {
      if (chunk.data.length === 0) {
        const { code = 204, description } = chunk.headers ?? {};
        if (code >= 400) throw new Error(`the broker stopped the backup of ${name}: ${code} ${description}`);
        break;
      }
      yield chunk.data;
      // The broker sends more when it is acknowledged.
      chunk.respond();
    }
    yield endOfStream;
  } finally {
    chunks.unsubscribe();
  }
};

/**
 * Restores the frames of {@link backUpStreams} in place of streams of the same names. Resolves to the number of streams. Each
 * has the size that is wanted here, because this broker may have another disk than the one that was backed up, and not less than it holds.
 * @throws Error in words if one of them has messages and `replace` is false.
 */
export const restoreStreams = async (
  bus: Bus,
  frames: AsyncGenerator<Uint8Array>,
  { replace, ...shape }: EnsureOptions & { readonly replace: boolean },
): Promise<number> => {
  const connection = connectionOf(bus);
  const names = textOf<string[]>((await frames.next()).value);
  const existing = (await allStreams(connection)).filter(({ config }) => names.includes(config.name));
  const full = existing.find(({ state }) => state.messages > 0);
  if (full && !replace)
    throw new Error(
      `the broker has messages (${full.config.name}: ${full.state.messages}): restore with --replace to remove them first`,
    );
  for (const { config } of existing) await connection.jsm.streams.delete(config.name);
  const sizes = new Map(wantedStreams(shape).map(({ name, max_bytes }) => [name, max_bytes]));
  let deliver: string | undefined;
  for await (const frame of frames) {
    if (deliver === undefined) {
      const { config, state } = textOf<StreamHeader>(frame);
      const maxBytes = Math.max(sizes.get(config.name) ?? config.max_bytes, state.bytes);
      const wanted = { config: { ...config, num_replicas: shape.replicas, max_bytes: maxBytes }, state };
      const subject = `$JS.API.STREAM.RESTORE.${config.name}`;
      deliver = (await request<{ deliver_subject: string }>(connection, subject, wanted)).deliver_subject;
      continue;
    }
    const ended = endOfStream.equals(frame);
    const reply = await connection.nc.request(deliver, ended ? undefined : frame, { timeout: timeoutMs });
    // The broker answers a chunk with nothing or with its error, and the last one with the stream.
    if (reply.data.length > 0) answerOf(deliver, reply);
    if (ended) deliver = undefined;
  }
  return names.length;
};

const textOf = <Value>(frame: Uint8Array | undefined): Value => JSON.parse(Buffer.from(frame ?? []).toString());
