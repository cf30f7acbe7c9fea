import { type Bus, countMessages, preparePublish } from "@herald/bus";
import { ImportChunkV1, importLimits } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { PrepareChunk } from "./store-lines.ts";

/** The result throws queue-full while as many chunks of the project wait as it may have, in all its imports, at all gateways. */
export const createPrepareChunk =
  (bus: () => Bus): PrepareChunk =>
  (chunk) => {
    const { projectId, importId, firstLine } = chunk;
    const publish = preparePublish(bus(), ImportChunkV1, chunk, { id: `${importId}/${firstLine}` });
    return async () => {
      const waiting = await countMessages(bus(), "PUSH_IMPORT", `push.import.v1.${projectId}.*`);
      if (waiting >= importLimits.waitingChunks)
        throw new HeraldError("queue-full", "imports: the project's share of the queue is full");
      return publish();
    };
  };
