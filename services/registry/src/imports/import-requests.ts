import { handleRequest, lastMessage, type RequestListener } from "@herald/bus";
import {
  CreateImportRequest,
  GetImport,
  type Import,
  ImportChunkV1,
  type ImportId,
  ListImportErrors,
  ListImports,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { ImportDocument } from "../stores/import-store.ts";

const importNotFound = (): HeraldError => new HeraldError("import-not-found", "id: the project has no such import");

/** The last chunk is applied for so long, and the stream has none: the others are dead letters. */
const lostAfterMs = 60_000;

/** What is stored of an import: what has been applied, and what still waits in the stream. */
const view = async ({ bus, imports, now }: Deps, found: ImportDocument): Promise<Import> => {
  const { _id, projectId, format, dryRun, at } = found;
  const subject = `push.import.v1.${projectId}.${_id}`;
  // The stream first: a chunk that it has no more is applied.
  const waiting = (await lastMessage(bus, "PUSH_IMPORT", subject, ImportChunkV1))?.data;
  const applied = await imports.applied(projectId, _id);
  const waitingUntil = waiting === undefined ? 0 : waiting.firstLine + waiting.lines - 1;
  const end = applied.end ?? (waiting?.last ? waitingUntil : undefined);
  const isQuiet = waiting === undefined && now().getTime() - (applied.lastAt?.getTime() ?? 0) > lostAfterMs;
  // Lines of dead letters count as refused, so that the import ends; a replay counts them as what they are.
  const lost = isQuiet && applied.end !== undefined ? Math.max(0, applied.end - applied.lines) : 0;
  const processed = applied.lines + lost;
  const kept = applied.errors === 0 ? 0 : await imports.countErrors(projectId, _id);
  return {
    id: _id,
    format,
    dry_run: dryRun,
    status:
      end === undefined ? "uploading" : applied.end !== undefined && processed >= end ? "completed" : "processing",
    lines_stored: Math.max(applied.lastLine, waitingUntil),
    lines_processed: processed,
    created: applied.created,
    updated: applied.updated,
    unchanged: applied.unchanged,
    refused: applied.refused + lost,
    errors_left_out: Math.max(0, applied.errors - kept) + lost,
    created_at: at.toISOString(),
  };
};

export const handleImportRequests = (deps: Deps): RequestListener[] => {
  const { bus, imports, projects, now } = deps;
  const find = async (projectId: ProjectId, importId: ImportId): Promise<ImportDocument> => {
    const found = await imports.find(projectId, importId);
    if (found === undefined) throw importNotFound();
    return found;
  };
  return [
    handleRequest(bus, CreateImportRequest, async ({ projectId, importId, format, dryRun }) => {
      if (!(await projects.exists(projectId)))
        throw new HeraldError("project-not-found", "project: there is none of this id");
      await imports.create({ _id: importId, projectId, format, dryRun, at: now() });
      return view(deps, await find(projectId, importId));
    }),

    handleRequest(bus, GetImport, async ({ projectId, importId }) => view(deps, await find(projectId, importId))),

    handleRequest(bus, ListImports, async ({ projectId, page }) => {
      const found = await imports.list(projectId, page);
      return { ...found, data: await Promise.all(found.data.map((one) => view(deps, one))) };
    }),

    handleRequest(bus, ListImportErrors, async ({ projectId, importId, page }) => {
      await find(projectId, importId);
      const found = await imports.listErrors(projectId, importId, page);
      return { ...found, data: found.data.map(({ line, field, reason, code }) => ({ line, field, reason, code })) };
    }),
  ];
};
