import { type DeclaredKind, kindLimits, type ProjectId } from "@herald/contracts";
import { existing, notFound } from "@herald/kit";
import { guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { projectCollection } from "./project-store.ts";
import { notDeleted } from "./tombstones.ts";

/** The kinds that projects declare, in the document of the project. */
export const createKindStore = (db: Db) => {
  const projects = projectCollection(db);
  return guardStore({
    /** In the order of their declaration. @throws HeraldError `project-not-found` */
    list: async (projectId: ProjectId): Promise<readonly DeclaredKind[]> => {
      const found = await projects.findOne({ _id: projectId, ...notDeleted }, { projection: { kinds: 1 } });
      return existing(found, () => notFound("project-not-found", "project")).kinds ?? [];
    },

    /** "none": the project has no room for it, or does not exist. */
    put: async (projectId: ProjectId, kind: DeclaredKind): Promise<"created" | "replaced" | "none"> => {
      const own = { _id: projectId, ...notDeleted };
      const replaced = await projects.updateOne({ ...own, "kinds.kind": kind.kind }, { $set: { "kinds.$": kind } });
      if (replaced.matchedCount > 0) return "replaced";
      const { matchedCount } = await projects.updateOne(
        { ...own, "kinds.kind": { $ne: kind.kind }, [`kinds.${kindLimits.perProject - 1}`]: { $exists: false } },
        { $push: { kinds: kind } },
      );
      return matchedCount > 0 ? "created" : "none";
    },

    /** False when the project has not declared it. */
    remove: async (projectId: ProjectId, kind: string): Promise<boolean> => {
      const { modifiedCount } = await projects.updateOne(
        { _id: projectId, ...notDeleted, "kinds.kind": kind },
        { $pull: { kinds: { kind } } },
      );
      return modifiedCount > 0;
    },
  });
};
