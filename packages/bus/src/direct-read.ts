import type { StreamName } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { createInbox, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { notConnected, toBusError } from "./bus-error.ts";
import type { Connection } from "./connect.ts";

/** A message as its stream holds it. */
export type Stored = {
  readonly sequence: number;
  readonly subject: string;
  readonly headers: MsgHdrs;
  readonly body: Uint8Array;
  readonly storedAt: Date;
  /** Matching messages behind this one. */
  readonly pending: number;
};

type Query =
  /** `batch` messages from `seq` or a time on, of the subjects of `next_by_subj`; fewer where they are more than `max_bytes`, but at least one. */
  | {
      readonly seq?: number;
      readonly start_time?: string;
      readonly batch: number;
      readonly next_by_subj: string;
      readonly max_bytes?: number;
    }
  /** The last message of each subject. */
  | { readonly multi_last: readonly string[] };

/** The broker answers in milliseconds; a caller must know within seconds that it is unavailable. */
const timeoutMs = 5_000;

/** The broker's codes for the end of an answer, and for an answer without messages. */
const endOfBatch = 204;
const noMessages = 404;
const noResponders = 503;

/**
 * Reads messages of a stream that allows direct gets, without affecting its consumers. `keep` takes what is wanted of each, so that large
 * bodies need not stay. Throws HeraldError bus-unavailable. Not the client's own `getBatch`: that one leaves a subscription behind each time,
 * and waits for ever when the connection is lost in the middle.
 */
export const directRead = <Kept>(
  connection: Connection,
  stream: StreamName | `KV_${string}`,
  query: Query,
  keep: (message: Stored) => Kept,
): Promise<Kept[]> => {
  const { nc } = connection;
  if (!connection.connected) return Promise.reject(notConnected());
  return new Promise((resolve, reject) => {
    const kept: Kept[] = [];
    const end = (error?: unknown) => {
      clearTimeout(timer);
      connection.waiting.delete(lost);
      subscription.unsubscribe();
      if (error === undefined) resolve(kept);
      else reject(toBusError(error));
    };
    const lost = () => end(notConnected());
    const inbox = createInbox(connection.inboxPrefix);
    const subscription = nc.subscribe(inbox, {
      callback: (error, msg) => {
        if (error) return end(error);
        const code = msg.headers?.code ?? 0;
        if (code === endOfBatch || code === noMessages) return end();
        if (code === noResponders) return end(notAnswering());
        if (code !== 0) return end(new Error(`a direct get of ${stream} is refused: ${msg.headers?.description}`));
        try {
          kept.push(keep(toStored(msg)));
        } catch (problem) {
          end(problem);
        }
      },
    });
    connection.waiting.add(lost);
    const timer = setTimeout(() => end(notAnswering()), timeoutMs);
    nc.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(query), { reply: inbox });
  });
};

const notAnswering = () => new HeraldError("bus-unavailable", "the message bus does not answer");

/** The broker's headers stand behind the message's own, so its are the last of a name. */
const toStored = ({ headers, data }: Msg): Stored => {
  if (headers === undefined) throw new TypeError("a direct get was answered without headers");
  return {
    sequence: Number(headers.last("Nats-Sequence")),
    subject: headers.last("Nats-Subject"),
    headers,
    body: data,
    storedAt: new Date(headers.last("Nats-Time-Stamp")),
    pending: Number(headers.last("Nats-Num-Pending") || 0),
  };
};
