import type { StreamName } from "@herald/contracts";
import { notConnected, toBusError } from "./bus-error.ts";
import { type Bus, connectionOf } from "./connect.ts";

/**
 * How many messages a stream holds of the subjects that match. The broker names every one of those subjects in its answer, some 90
 * bytes each: ask seldom where there may be many. Throws HeraldError bus-unavailable.
 */
export const countMessages = async (bus: Bus, stream: StreamName, filter: string): Promise<number> => {
  const { connected, jsm } = connectionOf(bus);
  if (!connected) throw notConnected();
  const { state } = await jsm.streams.info(stream, { subjects_filter: filter }).catch((error: unknown) => {
    throw toBusError(error);
  });
  return Object.values(state.subjects ?? {}).reduce((sum, messages) => sum + messages, 0);
};
