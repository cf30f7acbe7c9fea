import type { NotificationId, ProjectId, Tag } from "@herald/contracts";
import type { Db } from "mongodb";
import { type Open, openedEvent, openId } from "../src/domain/open.ts";
import { openIncrements, taggedOpenDelta } from "../src/domain/stats-delta.ts";
import { createStatsDeltaStore } from "../src/stores/stats-delta-store.ts";

/** Opens that are written and counted at once: a large report. */
const atATime = 2_000;
/** Writes under way: the database has more than one core. */
const concurrent = 4;

/**
 * Puts many opens into analytics' database as they are when their events are out, and what they add to the statistics as a rebuild
 * stores it: a running service aggregates that into the rollups. For benchmarks. Each open is of another device or notification. `tagsOf`:
 * the kind and labels of a notification.
 */
export const seedOpens = async (
  db: Db,
  projectId: ProjectId,
  opens: Iterable<Open>,
  tagsOf: (id: NotificationId) => readonly Tag[] = () => [],
): Promise<void> => {
  const rows = db.collection<Open & { readonly _id: string }>("opens");
  const deltas = createStatsDeltaStore(db);
  const write = async (page: readonly Open[]): Promise<void> => {
    const documents = page.map((open) => ({ ...open, _id: openId(open) }));
    const _id = `rebuild/${documents[0]?._id ?? ""}`;
    await rows.insertMany(documents, { ordered: false });
    await deltas.put([
      { _id, projectId, kind: "rebuild", increments: openIncrements(page, new Map()) },
      ...page.flatMap((open) => {
        const { data } = openedEvent(open, null, tagsOf(open.notificationId));
        return taggedOpenDelta(data) ?? [];
      }),
    ]);
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
