import { defineHandler } from "@herald/bus";
import { ImportChunkV1, type ImportError, importedDeviceId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { type ParsedDevice, parseDevice, putDevices } from "./put-devices.ts";
import { createReadLine } from "./read-line.ts";

/** Each is five hundred devices that share commands with the others. */
const concurrency = 4;

/** What concerns one device is a refused line. What passes by itself must not refuse one. */
const passing = (error: unknown): unknown =>
  error instanceof HeraldError && error.code === "topic-exists"
    ? new HeraldError("service-unavailable", error.messages, { cause: error })
    : error;

/**
 * Applies a chunk of an imported file. A repeat changes nothing and counts nothing: devices are found by their tokens, a new one has an id that
 * its line decides, and a chunk is counted under its first line.
 */
export const applyImportChunk = (deps: Deps) =>
  defineHandler({
    durable: "registry-import", // renaming a durable replays its stream
    message: ImportChunkV1,
    concurrency,
    handle: ({ data: chunk }) =>
      // In order, so that of two lines of one device the later one counts.
      deps.keyedMutex(chunk.importId, async () => {
        const { projectId, importId } = chunk;
        const [found, isApplied] = await Promise.all([
          deps.imports.find(projectId, importId),
          deps.imports.hasChunk(chunk),
        ]);
        // Without its import, its project was deleted.
        if (found === undefined || isApplied) return;
        const readLine = createReadLine(found.format, chunk.header);
        const at = new Date(chunk.at);
        const lines: number[] = [];
        const parsed: ParsedDevice[] = [];
        for (const line of chunk.content) {
          const read = readLine(line);
          lines.push(line.n);
          const device = "device" in read ? parseDevice(read.device) : read;
          parsed.push("device" in device ? { ...device, newId: importedDeviceId(importId, line.n, at) } : device);
        }
        const results = await putDevices(deps, projectId, parsed, { dryRun: found.dryRun }).catch((error: unknown) => {
          throw passing(error);
        });
        const counts = { created: 0, updated: 0, unchanged: 0, refused: 0 };
        const problems: ImportError[] = [];
        for (const [index, one] of results.entries()) {
          counts[one.result]++;
          if (one.result !== "refused") continue;
          for (const { field, detail, code } of one.problems)
            problems.push({ line: lines[index] ?? 0, field, reason: detail, code });
        }
        await deps.imports.addChunk(chunk, counts, problems, deps.now());
      }),
  });
