import type { NotificationId, ProjectId, Tag } from "@herald/contracts";
import type { Db } from "mongodb";
import { aggregateDeltas } from "../src/domain/aggregate.ts";
import { unitMs } from "../src/domain/intervals.ts";
import type { Increment } from "../src/domain/stats-delta.ts";
import { createRollupStore } from "../src/stores/rollup-store.ts";

/**
 * Writes figures of many values of a label into analytics' rollups, for every hour of some days: the rollups that `by` reads for whole
 * hours and days. For benchmarks, after a rebuild, which would remove them.
 */
export const seedValues = async (
  db: Db,
  projectId: ProjectId,
  { label, values, from, days }: { label: string; values: number; from: Date; days: number },
): Promise<void> => {
  const rollups = createRollupStore(db);
  const tags = Array.from({ length: values }, (_, value): Tag => `label/${label}/value-${value}`);
  const adds: Increment["adds"] = ["sent.ios", "sent.android", "failed.ios.unregistered", "opened", "openedOn.ios"].map(
    (path) => [path, 1],
  );
  for (let day = 0; day < days; day++) {
    const hours = Array.from(
      { length: 24 },
      (_, hour) => new Date(from.getTime() + day * unitMs.day + hour * unitMs.hour),
    );
    const increments = hours.flatMap((slot) =>
      tags.map((tag) => ({ notificationId: "none" as NotificationId, slot, only: "tags" as const, tags: [tag], adds })),
    );
    const changes = aggregateDeltas([{ projectId, increments }], (_, tag) => tag);
    await rollups.add(
      0,
      changes.filter(({ scope }) => /^(hour|day)\//.test(scope)),
    );
  }
};
