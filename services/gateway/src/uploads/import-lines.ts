import { type Bus, countMessages, preparePublish } from "@herald/bus";
import { ImportChunkV1, type ImportId, importLimits, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { LineKind } from "./store-lines.ts";

/** Resolves when the stream has stored the chunk. */
export type StoreImportChunk = (chunk: ImportChunkV1) => Promise<unknown>;

/** Throws queue-full while as many chunks of the project wait as it may have, in all its imports, at all gateways. */
export const createStoreImportChunk =
  (bus: () => Bus): StoreImportChunk =>
  async (chunk) => {
    const { projectId, importId, firstLine } = chunk;
    const waiting = await countMessages(bus(), "PUSH_IMPORT", `push.import.v1.${projectId}.*`);
    if (waiting >= importLimits.waitingChunks)
      throw new HeraldError("queue-full", "imports: the project's share of the queue is full");
    await preparePublish(bus(), ImportChunkV1, chunk, { id: `${importId}/${firstLine}` })();
  };

/** What the fields around a line's text take in its chunk. */
const lineBytes = 24;

type Options = {
  readonly projectId: ProjectId;
  readonly importId: ImportId;
  readonly store: StoreImportChunk;
  readonly now: () => Date;
};

/** The lines of an import: registry reads them as devices, with the header of their file. */
export const importLines = ({
  projectId,
  importId,
  store,
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
    store: ({ firstLine, lastLine, entries, last }) =>
      store({
        ...{ projectId, importId, firstLine, lines: lastLine - firstLine + 1, last },
        ...{ at: now().toISOString(), content: entries, ...header },
      }),
  };
};
