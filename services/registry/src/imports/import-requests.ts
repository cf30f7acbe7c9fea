import { handleRequest, lastMessage, type RequestListener } from "@herald/bus";
import {
  type Import,
  ImportChunkV1,
  type ImportId,
  importLimits,
  importRequests,
  type LineError,
  type ProjectId,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { ImportDocument } from "../stores/import-store.ts";

const importNotFound = (): HeraldError => notFound("import-not-found", "id");

/** An import of a few lines is finished within a second, one of millions in an hour. */
const fullRetrySeconds = 60;

/** If the stream is empty and the last chunk was applied this long ago, the missing chunks are dead letters. */
const lostAfterMs = 60_000;

type ViewDeps = Pick<Deps, "bus" | "imports" | "now">;

/** The state of an import, from its applied chunks and the chunks that still wait in the stream. */
const view = async ({ bus, imports, now }: ViewDeps, found: ImportDocument): Promise<Import> => {
  const { _id, projectId, format, dryRun, at } = found;
  const subject = `push.import.v1.${projectId}.${_id}`;
  // The stream is read first: a chunk that is no longer in it is applied.
  const waiting = (await lastMessage(bus, "PUSH_IMPORT", subject, ImportChunkV1))?.data;
  const applied = await imports.applied(projectId, _id);
  const waitingUntil = waiting === undefined ? 0 : waiting.firstLine + waiting.lines - 1;
  const end = applied.end ?? (waiting?.last ? waitingUntil : undefined);
  const isQuiet = waiting === undefined && now().getTime() - (applied.lastAt?.getTime() ?? 0) > lostAfterMs;
  // Lines of dead letters count as refused, so that the import ends; a replay counts their real results.
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
    unsupported: applied.unsupported,
    lines_with: {
      user_id: applied.users,
      time_zone: applied.timeZones,
      locale: applied.locales,
      last_seen_at: applied.times,
    },
    errors_left_out: Math.max(0, applied.errors - kept) + lost,
    created_at: at.toISOString(),
  };
};

/** The report of an import: its state, and once it is completed, what is said about fields of its lines. */
const report = async (deps: ViewDeps, found: ImportDocument): Promise<Import> => {
  const state = await view(deps, found);
  if (state.status !== "completed") return state;
  const notes = await deps.imports.notes(found.projectId, found._id);
  return {
    ...state,
    unused: notes.flatMap(({ kind, field, lines }) => (kind === "renamed" ? [] : { field, reason: kind, lines })),
    renamed: notes.flatMap(({ kind, field, name = "", lines }) => (kind === "renamed" ? { field, name, lines } : [])),
  };
};

export const handleImportRequests = (deps: ViewDeps & Pick<Deps, "keyedMutex" | "projects">): RequestListener[] => {
  const { bus, imports, projects, now } = deps;
  const find = async (projectId: ProjectId, importId: ImportId) =>
    existing(await imports.find(projectId, importId), importNotFound);
  const requireFew = async (projectId: ProjectId): Promise<void> => {
    const { unfinished: max, unfinishedMs } = importLimits;
    const since = new Date(now().getTime() - unfinishedMs);
    if ((await imports.countUnfinished(projectId, since, max)) >= max)
      throw new HeraldError(
        "quota-exceeded",
        `imports: a project may have at most ${max} unfinished ones; upload the files of those that wait, which count for a day`,
        { retryAfterSeconds: fullRetrySeconds },
      );
  };
  return [
    handleRequest(bus, importRequests.create, async ({ projectId, importId, format, dryRun }) => {
      await projects.requireExisting(projectId);
      const document = { _id: importId, projectId, format, dryRun, at: now() };
      await deps.keyedMutex(`${projectId} imports`, async () => {
        if ((await imports.find(projectId, importId)) === undefined) await requireFew(projectId);
        await imports.create(document);
      });
      return view(deps, await find(projectId, importId));
    }),

    handleRequest(bus, importRequests.get, async ({ projectId, importId }) =>
      report(deps, await find(projectId, importId)),
    ),

    handleRequest(bus, importRequests.list, async ({ projectId, page }) => {
      const found = await imports.list(projectId, page);
      return { ...found, data: await Promise.all(found.data.map((one) => view(deps, one))) };
    }),

    handleRequest(bus, importRequests.errors, async ({ projectId, importId, page }) => {
      await find(projectId, importId);
      const view = ({ line, field, reason, code }: LineError) => ({ line, field, reason, code });
      return mapPage(await imports.listErrors(projectId, importId, page), view);
    }),
  ];
};
