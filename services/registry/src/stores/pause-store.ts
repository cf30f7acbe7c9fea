import type { Author, EventData, ProjectId } from "@herald/contracts";
import { byIndex, ensureIndexes, findSome, guardStore, having, type IndexSpec, upsertOnce } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { installationRow, type PauseEntry } from "../domain/pauses.ts";
import { type EventContext, registryEvent } from "../domain/registry-events.ts";
import { type ProjectDocument, projectCollection } from "./project-store.ts";
import { notDeleted } from "./tombstones.ts";

const untilIndex = {
  fields: { "paused.until": 1 },
  purpose: "sweep",
  partial: having("paused.until"),
} as const satisfies IndexSpec;

/** Pauses that end in one pass; the next pass ends the others. */
const maxEnds = 100;

/** The database uses the partial index only if the query says that the field exists. */
const ended = (at: Date): Filter<ProjectDocument> => ({ "paused.until": { $exists: true, $lte: at } });

/** The pauses of projects, in their documents, and that of all projects, in a row beside them. */
export const createPauseStore = (db: Db) => {
  const projects = projectCollection(db);

  const remove = (
    context: EventContext,
    filter: Filter<ProjectDocument>,
    how: Pick<EventData<"ProjectResumedV1">, "reason" | "by">,
  ): Promise<ProjectDocument | null> =>
    projects.findOneAndUpdate(
      { _id: context.projectId, ...notDeleted, ...filter },
      {
        $unset: { paused: 1 },
        $push: { outbox: registryEvent(context, "ProjectResumedV1", context.projectId, how) },
      },
      { returnDocument: "after" },
    );

  return guardStore({
    ensureIndexes: () => ensureIndexes(projects, [untilIndex]),

    /** Null: its pause is not `before` any more, or it does not exist. */
    pause: async (
      context: EventContext,
      paused: PauseEntry,
      before: PauseEntry | undefined,
    ): Promise<ProjectDocument | null> => {
      const { projectId } = context;
      const { by, reason, until } = paused;
      const data = {
        reason: "requested" as const,
        by,
        ...(reason !== undefined && { detail: reason }),
        ...(until && { until: until.toISOString() }),
      };
      return projects.findOneAndUpdate(
        { _id: projectId, ...notDeleted, ...(before ? { "paused.at": before.at } : { paused: { $exists: false } }) },
        { $set: { paused }, $push: { outbox: registryEvent(context, "ProjectPausedV1", projectId, data) } },
        { returnDocument: "after" },
      );
    },

    /** Null: it is not paused. */
    resume: (context: EventContext, by: Author): Promise<ProjectDocument | null> =>
      remove(context, { paused: { $exists: true } }, { reason: "requested", by }),

    pauseAll: async (paused: PauseEntry): Promise<void> => {
      await upsertOnce(() => projects.updateOne({ _id: installationRow }, { $set: { paused } }, { upsert: true }));
    },

    resumeAll: async (): Promise<void> => {
      await projects.deleteOne({ _id: installationRow });
    },

    /** The pause of all projects. */
    ofAll: async (): Promise<PauseEntry | undefined> =>
      (await projects.findOne({ _id: installationRow }, { projection: { paused: 1 } }))?.paused,

    /** The projects, or the row of all, whose pause ends by now. */
    endedBy: async (at: Date): Promise<ProjectId[]> =>
      (await findSome(projects, ended(at), { ...byIndex(untilIndex), limit: maxEnds })).map(({ _id }) => _id),

    /** Ends it if its time has come by then, unless it was ended or replaced since. */
    end: async (context: EventContext): Promise<void> => {
      const { projectId: _id, at } = context;
      if (_id === installationRow) await projects.deleteOne({ _id, ...ended(at) });
      else await remove(context, ended(at), { reason: "until" });
    },
  });
};
