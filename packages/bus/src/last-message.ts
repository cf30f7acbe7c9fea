import type { MessageContract, StreamName } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { StoredMsg } from "@nats-io/jetstream";
import type { z } from "zod";
import { notConnected, toBusError } from "./bus-error.ts";
import { type Bus, connectionOf } from "./connect.ts";

/**
 * The last message of a subject that the stream still has, also one that is being processed right now; undefined when there is none.
 * Any replica answers first; where that one has none, the stream's leader is asked, since a replica that was unavailable lags behind.
 * Throws HeraldError bus-unavailable, or schema when the message is not what the contract says.
 */
export const lastMessage = async <Schema extends z.ZodType>(
  bus: Bus,
  stream: StreamName,
  subject: string,
  contract: MessageContract<Schema>,
): Promise<{ data: z.output<Schema>; at: Date } | undefined> => {
  const { connected, jsm } = connectionOf(bus);
  if (!connected) throw notConnected();
  const query = { last_by_subj: subject };
  const read = async () =>
    (await jsm.direct.getMessage(stream, query)) ?? (await jsm.streams.getMessage(stream, query));
  const found = await read().catch((error: unknown) => {
    throw toBusError(error);
  });
  if (found === null) return undefined;
  const parsed = contract.schema.safeParse(readJson(found));
  if (!parsed.success)
    throw new HeraldError("schema", `${contract.name}: the stored message does not parse`, { cause: parsed.error });
  return { data: parsed.data as z.output<Schema>, at: found.time };
};

const readJson = (found: StoredMsg): unknown => {
  try {
    return found.json();
  } catch {
    return undefined;
  }
};
