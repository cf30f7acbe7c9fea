import { type Bus, countMessages, preparePublish } from "@herald/bus";
import { ImportChunkV1, type ImportId, importLimits, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { LineKind } from "./store-lines.ts";

/** Encodes a chunk once. Each call of the result tries to publish the chunk, and resolves when the stream has stored it. */
export type PrepareChunk = (chunk: ImportChunkV1) => () => Promise<unknown>;

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

/** What the fields around a line's text take in its chunk. */
const lineBytes = 24;

type Options = {
  readonly projectId: ProjectId;
  readonly importId: ImportId;
  readonly prepare: PrepareChunk;
  readonly now: () => Date;
};

/** The lines of an import: registry reads them as devices, with the header of their file. */
export const importLines = ({
  projectId,
  importId,
  prepare,
  now,
}: Options): LineKind<ImportChunkV1["content"][number]> => {
  let header: { readonly header?: string } = {};
  return {
    limits: importLimits,
    readHeader: (text) => {
      header = { header: text };
    },
    read: (line, n) => ({
      entry: { n, ...line },
      bytes: lineBytes + ("text" in line ? Buffer.byteLength(JSON.stringify(line.text)) : lineBytes),
    }),
    prepare: ({ firstLine, lastLine, entries, last }) =>
      prepare({
        ...{ projectId, importId, firstLine, lines: lastLine - firstLine + 1, last },
        ...{ at: now().toISOString(), content: entries, ...header },
      }),
  };
};
