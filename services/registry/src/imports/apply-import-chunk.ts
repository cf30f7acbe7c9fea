import { defineHandler } from "@herald/bus";
import { errors, ImportChunkV1, importedDeviceId, importLimits, type LineError } from "@herald/contracts";
import { createFairGate, type FairGate, HeraldError, hasCode, type Logger, lineErrors } from "@herald/kit";
import type { Deps } from "../deps.ts";
import {
  type ParsedDevice,
  type PutDevicesDeps,
  type PutResult,
  parseDevices,
  startPutDevices,
} from "../requests/put-devices.ts";
import type { ChunkCounts } from "../stores/import-store.ts";
import { countGiven, createChunkReport } from "./chunk-report.ts";
import { createReadLine } from "./read-line.ts";

/** Chunks of five hundred devices each. Concurrent chunks share database commands. A project that is alone has four of these places. */
const places = 6;
/** Chunks in memory, of which most wait for a place: as many as two projects may have in the stream. */
const concurrency = 2 * importLimits.waitingChunks;

/** Shares the places between projects. */
export const createImportGate = (): FairGate => createFairGate({ total: places });

/** A temporary error must not refuse a line: the chunk is retried. */
const passing = (error: unknown): unknown =>
  hasCode(error, "topic-exists") ? new HeraldError("service-unavailable", error.messages, { cause: error }) : error;

/** Whether a retry may succeed. Retries wait without a limit for an unavailable dependency. */
const mayPass = (error: unknown, isLastTry: boolean): boolean => {
  const { retry } = errors[error instanceof HeraldError ? error.code : "internal"];
  return retry === "unavailable" || (retry === "later" && !isLastTry);
};

/** What the report of an import says about a chunk, beside the results of its lines. */
type ChunkFacts = Pick<ChunkCounts, "unsupported" | "notes" | keyof ReturnType<typeof countGiven>>;
const noFacts: ChunkFacts = { unsupported: 0, notes: [], users: 0, timeZones: 0, locales: 0, times: 0 };

type ImportChunkDeps = PutDevicesDeps & Pick<Deps, "imports">;

/** Reads the lines of a chunk and starts to put their devices. Undefined when there is nothing to do. */
const startChunk = async (deps: ImportChunkDeps, chunk: ImportChunkV1) => {
  const { projectId, importId } = chunk;
  const [found, isApplied] = await Promise.all([deps.imports.find(projectId, importId), deps.imports.hasChunk(chunk)]);
  // If the import is missing, its project was deleted.
  if (found === undefined || isApplied) return undefined;
  const report = createChunkReport();
  const readLine = createReadLine(found.format, chunk.header, report);
  const at = new Date(chunk.at);
  const parsed = await parseDevices(chunk.content, readLine);
  const devices = parsed.map((one, index): ParsedDevice => {
    const line = chunk.content[index];
    return "device" in one && line ? { ...one, newId: importedDeviceId(importId, line.n, at) } : one;
  });
  const { results } = await startPutDevices(deps, projectId, devices, { dryRun: found.dryRun });
  const factsOf = (done: readonly PutResult[]): ChunkFacts => ({
    unsupported: report.unsupported(),
    notes: report.notes(),
    ...countGiven(devices, done),
  });
  return { results, factsOf };
};

/** Counts the results of a chunk, in the order of its lines. */
const addChunk = async (
  deps: Pick<Deps, "imports" | "keyedMutex" | "now">,
  chunk: ImportChunkV1,
  results: readonly PutResult[],
  facts: ChunkFacts,
): Promise<void> => {
  const counts = { created: 0, updated: 0, unchanged: 0, refused: 0, ...facts };
  const problems: LineError[] = [];
  for (const [index, one] of results.entries()) {
    counts[one.result]++;
    if (one.result !== "refused") continue;
    problems.push(...lineErrors(chunk.content[index]?.n ?? 0, one.problems));
  }
  // One chunk at a time, because an import stores a limited number of errors.
  await deps.keyedMutex(`${chunk.importId} report`, () => deps.imports.addChunk(chunk, counts, problems, deps.now()));
};

const giveUp = (code: string): PutResult => ({
  result: "refused",
  problems: [
    {
      field: "",
      detail:
        "Herald could not process this part of the file; import the file again, and the devices that are stored are found unchanged",
      code,
    },
  ],
});

/**
 * Applies a chunk of an imported file. A repeat changes nothing and counts nothing: devices are found by their tokens, the id of a new
 * device is derived from its line, and a chunk is counted under its first line. If a chunk fails in `maxTries` deliveries, or crashes the
 * process each time, its lines are refused, so that each import ends.
 */
export const applyImportChunk = (
  deps: ImportChunkDeps,
  { maxTries, gate, log }: { readonly maxTries: number; readonly gate: FairGate; readonly log: Logger },
) =>
  defineHandler({
    durable: "registry-import", // renaming a durable replays its stream
    message: ImportChunkV1,
    concurrency,
    handle: async ({ data: chunk, deliveryCount }) => {
      const { projectId, importId, firstLine } = chunk;
      const refuse = async (code: string, err?: unknown): Promise<void> => {
        log.error({ err, projectId, importId, firstLine, deliveries: deliveryCount }, "refused a chunk of an import");
        if ((await deps.imports.find(projectId, importId)) === undefined) return;
        await addChunk(
          deps,
          chunk,
          chunk.content.map(() => giveUp(code)),
          noFacts,
        );
      };
      const leave = await gate.enter(projectId, 1);
      // If an upload repeats a chunk, the second one waits for the first.
      const applying = deps.keyedMutex(`${importId}/${firstLine}`, async () => {
        if (deliveryCount > maxTries) return refuse("internal");
        try {
          // Chunks start in order and continue concurrently. Devices of one push token take turns, so that the later of
          // two lines of one device wins.
          const started = await deps.keyedMutex(importId, () => startChunk(deps, chunk));
          if (started === undefined) return;
          const results = await started.results;
          await addChunk(deps, chunk, results, started.factsOf(results));
        } catch (error) {
          const passes = passing(error);
          if (mayPass(passes, deliveryCount >= maxTries)) throw passes;
          await refuse(passes instanceof HeraldError ? passes.code : "internal", passes);
        }
      });
      await applying.finally(leave);
    },
  });
