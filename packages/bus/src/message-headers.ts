import { headerNames } from "@herald/contracts";
import { currentRequestId } from "@herald/kit";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
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

const carry = { set: (carrier: MsgHdrs, key: string, value: string) => carrier.set(key, value) };

/** Headers of an outgoing message: the request it belongs to, and the active span as its origin. */
export const outgoingHeaders = (more: Readonly<Record<string, string>> = {}): MsgHdrs => {
  const all = headers();
  const requestId = currentRequestId();
  if (requestId !== undefined) all.set(headerNames.requestId, requestId);
  propagation.inject(context.active(), all, carry);
  for (const [name, value] of Object.entries(more)) all.set(name, value);
  return all;
};

/** Headers of an entry of a bucket, which nobody follows anywhere: what the broker acts on, and nothing that would be kept with the entry. */
export const plainHeaders = (wanted: Readonly<Record<string, string>>): MsgHdrs | undefined => {
  const entries = Object.entries(wanted);
  if (entries.length === 0) return undefined;
  const all = headers();
  for (const [name, value] of entries) all.set(name, value);
  return all;
};

/** A message of a bucket that says that its key has no value any more. */
export const isDeletion = (headers: MsgHdrs | undefined): boolean =>
  headers !== undefined && (headers.has("KV-Operation") || headers.has("Nats-Marker-Reason"));
