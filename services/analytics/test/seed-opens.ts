import type { NotificationId, ProjectId, Tag } from "@herald/contracts";
import type { Db } from "mongodb";
import { type Report, reportRowId } from "../src/domain/report.ts";
import { reportIncrements, type StatsDelta, taggedIncrements } from "../src/domain/stats-delta.ts";
import { statsDeltaDocuments } from "../src/stores/stats-delta-store.ts";

/** Opens per write and delta: a large report. */
const atATime = 2_000;
/** Concurrent writes: the database has more than one core. */
const concurrent = 4;

/**
 * Writes many opens into analytics' database as if they were counted and published; a rebuild then adds them to the rollups. For
 * benchmarks. Each open is of another device or notification. `tagsOf`: the kind and labels of a notification.
 */
export const seedOpens = async (
  db: Db,
  projectId: ProjectId,
  opens: Iterable<Report>,
  tagsOf: (id: NotificationId) => readonly Tag[] = () => [],
): Promise<void> => {
  const write = async (page: readonly Report[]): Promise<void> => {
    const report = reportRowId(page[0] as Report);
    const rows = page.map((open) => ({ ...open, report, _id: reportRowId(open) }));
    const tagged = taggedIncrements(page, tagsOf);
    const deltas: StatsDelta[] = [
      { _id: report, projectId, kind: "opens", increments: reportIncrements(page, new Map()) },
      ...(tagged.length === 0
        ? []
        : [{ _id: `${report}/tags`, projectId, kind: "taggedOpens" as const, increments: tagged }]),
    ];
    const documents = statsDeltaDocuments(deltas).map(({ aggregated: _, ...document }) => document);
    await db.collection<(typeof rows)[number]>("opens").insertMany(rows, { ordered: false });
    await db.collection<(typeof documents)[number]>("statsDeltas").insertMany(documents, { ordered: false });
  };
  const left = opens[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (;;) {
      const page = Array.from({ length: atATime }, () => left.next()).flatMap(({ done, value }) =>
        done ? [] : [value],
      );
      if (page.length === 0) return;
      await write(page);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, worker));
};
