import { headerNames } from "@herald/contracts";
import { currentRequestId } from "@herald/kit";
import type { MsgHdrs } from "@nats-io/transport-node";
import { context, propagation } from "@opentelemetry/api";

/** Names that the broker acts on: never taken over from a message that is published again. */
export const brokerHeaders = {
  messageId: "Nats-Msg-Id",
  batchId: "Nats-Batch-Id",
  batchSequence: "Nats-Batch-Sequence",
  batchCommit: "Nats-Batch-Commit",
  schedule: "Nats-Schedule",
  scheduleTarget: "Nats-Schedule-Target",
  ttl: "Nats-TTL",
} as const;

/** On a dead letter: before the names that the broker would act on again. */
export const keptPrefix = "Herald-Original-";

/**
 * The Nats-Msg-Id of a message: its id among those of its contract. A stream remembers ids for all its subjects together, and what
 * starts a notification may well have the same id as what finishes it: without the name the later one would be swallowed silently.
 */
export const messageIdOf = (contract: { readonly name: string }, id: string): string => `${contract.name}/${id}`;

const encoder = new TextEncoder();

/**
 * Headers as they go over the wire. The client's own look through all names for each one that is set, which costs more than publishing the
 * message; of what is published it only ever asks for the bytes. Throws TypeError for a value of more than one line.
 */
const encoded = (all: Readonly<Record<string, string>>): MsgHdrs => {
  let text = "NATS/1.0\r\n";
  for (const [name, value] of Object.entries(all)) {
    if (/[\r\n]/.test(value)) throw new TypeError(`the header ${name} has more than one line`);
    text += `${name}: ${value}\r\n`;
  }
  const bytes = encoder.encode(`${text}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
};

/** Headers of an outgoing message: the request it belongs to, and the active span as its origin. */
export const outgoingHeaders = (more: Readonly<Record<string, string>> = {}): MsgHdrs => {
  const origin: Record<string, string> = {};
  const requestId = currentRequestId();
  if (requestId !== undefined) origin[headerNames.requestId] = requestId;
  propagation.inject(context.active(), origin);
  return encoded({ ...origin, ...more });
};

/** Headers of a bucket's entry: only those that the broker acts on, because entries are not traced and the rest would be stored with them. */
export const plainHeaders = (wanted: Readonly<Record<string, string>>): MsgHdrs => encoded(wanted);

/** A message of a bucket that says that its key has no value any more. */
export const isDeletion = (headers: MsgHdrs | undefined): boolean =>
  headers !== undefined && (headers.has("KV-Operation") || headers.has("Nats-Marker-Reason"));
