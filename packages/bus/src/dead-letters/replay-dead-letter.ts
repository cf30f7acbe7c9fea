import { contractOf, type DeadLetter, headerNames, type MessageContract } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type Bus, connectionOf } from "../connect.ts";
import type { Stored } from "../direct-read.ts";
import { brokerHeaders, keptPrefix, messageIdOf, outgoingHeaders } from "../message-headers.ts";
import { readJson } from "../parse-json.ts";
import { publishing } from "../publish.ts";
import { requestAck } from "../stream-request.ts";
import { describeLetter } from "./describe-letter.ts";
import { readDeadLetter } from "./get-dead-letter.ts";
import { recordReplay } from "./replay-records.ts";

/** A dead message before its replay. */
export type ReplayCandidate = {
  readonly letter: DeadLetter;
  /** The name of its contract, such as `SendV1`. */
  readonly message: string;
  /** Its content when it matches the contract of this version; undefined otherwise. */
  readonly data: unknown;
};

export type ReplayOptions = {
  /** Identifies this replay: repeated within two minutes, it publishes nothing more and counts once. */
  readonly attempt: string;
  /** Runs before the publish; throws to refuse the replay. */
  readonly allow?: (revived: ReplayCandidate) => Promise<void>;
};

/**
 * Publishes a dead message again as it was, on its own subject, and then remembers that. The dead letter stays; what dies again
 * becomes another one. `understood` says whether the body is now what its contract says.
 * Throws HeraldError dead-letter-not-found, replay-refused, bus-unavailable, queue-full, and what `allow` throws. After bus-unavailable it may have
 * been published: the same attempt again is safe.
 */
export const replayDeadLetter = async (
  bus: Bus,
  id: string,
  { attempt, allow }: ReplayOptions,
): Promise<{ letter: DeadLetter; understood: boolean }> => {
  const connection = connectionOf(bus);
  const stored = await readDeadLetter(connection, id);
  const contract = replayable(stored);
  const { data } = contract.schema.safeParse(readJson(stored.body));
  const letter = describeLetter(stored);
  await allow?.({ letter, message: contract.name, data });
  const headers = {
    ...originals(stored, contract),
    [headerNames.replayOf]: letter.id,
    // An id of its own: the stream would drop the original one as a duplicate.
    [brokerHeaders.messageId]: `replay/${letter.id}/${attempt}`,
  };
  await publishing(connection, contract.pattern, () =>
    requestAck(connection, letter.subject, stored.body, outgoingHeaders(headers)),
  );
  // Recorded afterwards: a crash in between loses the record, never the message.
  return { letter: { ...letter, ...(await recordReplay(bus, stored, attempt)) }, understood: data !== undefined };
};

const replayable = ({ headers }: Stored): MessageContract => {
  const contract = contractOf(headers.get(headerNames.deadSubject));
  // The right to write dead letters must not become the right to write on any subject.
  if (contract === undefined)
    throw new HeraldError("replay-refused", "id: its subject is not one on which Herald publishes");
  const missing = headers.get(headerNames.deadBodyBytes);
  if (missing !== "")
    throw new HeraldError("replay-refused", `id: its body of ${missing} bytes was too large to be kept`);
  return contract;
};

/** Leaves out headers about the failure, and those of the earlier request and trace. */
const ownHeaders = /^(Herald-|Nats-|traceparent$|tracestate$|baggage$)/i;

/** The message's headers from before it died. Its id stays the id of the fact, as `ce-id`, which the broker does not look at. */
const originals = ({ headers }: Stored, contract: MessageContract): Record<string, string> => {
  const kept: Record<string, string> = {};
  const prefix = messageIdOf(contract, "");
  const messageId = headers.get(keptPrefix + brokerHeaders.messageId);
  if (messageId.startsWith(prefix)) kept[headerNames.ceId] = messageId.slice(prefix.length);
  for (const name of headers.keys()) if (!ownHeaders.test(name)) kept[name] = headers.get(name);
  return kept;
};
