import { contractOf, type DeadLetter, headerNames, type MessageContract } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type Bus, connectionOf } from "../connect.ts";
import { brokerHeaders, keptPrefix, messageIdOf, outgoingHeaders, readJson } from "../message-format.ts";
import { publishing, requestAck } from "../publish.ts";
import type { Stored } from "../read-stream.ts";
import { describeLetter, readDeadLetter, recordReplay } from "./list-dead-letters.ts";

/** A dead message before its replay. */
export type ReplayCandidate = {
  readonly letter: DeadLetter;
  /** The name of the message's contract, such as `SendV1`. */
  readonly message: string;
  /** The message's content if it matches this version's contract; undefined otherwise. */
  readonly data: unknown;
};

type ReplayOptions = {
  /** Identifies this replay. The same attempt within two minutes publishes nothing more and counts once. */
  readonly attempt: string;
  /** Runs before the publish; throws to refuse the replay. */
  readonly allow?: (revived: ReplayCandidate) => Promise<void>;
};

/**
 * Publishes a dead message again, unchanged and on its original subject, then records the replay. The dead letter stays. If the message
 * fails again, it gets another dead letter. `understood` says whether the body now matches its contract.
 * Throws HeraldError dead-letter-not-found, replay-refused, bus-unavailable, queue-full, and the error of `allow`. After bus-unavailable
 * the message may have been published; repeating the same attempt is safe.
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
    // A new id, because the stream would drop the original one as a duplicate.
    [brokerHeaders.messageId]: `replay/${letter.id}/${attempt}`,
  };
  await publishing(connection, contract, () =>
    requestAck(connection, letter.subject, stored.body, outgoingHeaders(headers)),
  );
  // Recorded afterwards: a crash in between loses the record, never the message.
  return { letter: { ...letter, ...(await recordReplay(bus, stored, attempt)) }, understood: data !== undefined };
};

const replayable = ({ headers }: Stored): MessageContract => {
  const contract = contractOf(headers.get(headerNames.deadSubject));
  // The permission to write dead letters must not become the permission to publish on any subject.
  if (contract === undefined)
    throw new HeraldError("replay-refused", "id: its subject is not one on which Herald publishes");
  const missing = headers.get(headerNames.deadBodyBytes);
  if (missing !== "")
    throw new HeraldError("replay-refused", `id: its body of ${missing} bytes was too large to be kept`);
  return contract;
};

/** Headers about the failure, and about the earlier request and trace: a replay leaves them out. */
const ownHeaders = /^(Herald-|Nats-|traceparent$|tracestate$|baggage$)/i;

/** The message's headers before its failure. `ce-id`, which the broker ignores, keeps its id as the id of the fact. */
const originals = ({ headers }: Stored, contract: MessageContract): Record<string, string> => {
  const kept: Record<string, string> = {};
  const prefix = messageIdOf(contract, "");
  const messageId = headers.get(keptPrefix + brokerHeaders.messageId);
  if (messageId.startsWith(prefix)) kept[headerNames.ceId] = messageId.slice(prefix.length);
  for (const name of headers.keys()) if (!ownHeaders.test(name)) kept[name] = headers.get(name);
  return kept;
};
