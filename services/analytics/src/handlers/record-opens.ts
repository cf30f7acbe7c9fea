import { defineBatchHandler } from "@herald/bus";
import { OpenGroupV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ReportedOpen } from "../domain/open.ts";
import { openIncrements, reportId, type StatsDelta } from "../domain/stats-delta.ts";
import type { StoreDeltas } from "../jobs/aggregate-stats.ts";
import type { PublishOpens } from "../jobs/publish-opens.ts";
import type { NotificationFactsStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";

/** Stores each open once, counts it, and publishes its event. */
export const recordOpens = (
  opens: OpenStore,
  storeDeltas: StoreDeltas,
  notificationFacts: NotificationFactsStore,
  publishOpens: PublishOpens,
) =>
  defineBatchHandler({
    durable: "analytics-open-groups", // renaming a durable replays its stream
    message: OpenGroupV1,
    // Up to 1,000 opens in one insert; more gain nothing.
    size: 10,
    waitMs: 5,
    // Inserts overlap with the publishing of what came before them.
    concurrency: 4,
    async handle(deliveries) {
      const reported = deliveries.flatMap(({ data }) => {
        const report = reportId(data);
        return data.opens.map(({ notificationId, deviceId, platform, openedAt }): ReportedOpen => {
          const open = { projectId: data.projectId, notificationId, deviceId, openedAt: new Date(openedAt), report };
          return platform === undefined ? open : { ...open, platform };
        });
      });
      const { added, toPublish } = await opens.record(reported);
      const sendTimes = await notificationFacts.sendTimes(added.map(({ notificationId }) => notificationId));
      // Computed from the rows that a report added: a repeat after a crash finds the same rows and makes the same delta.
      const deltas = [...Map.groupBy(added, ({ report }) => report)].flatMap(([report, rows]): StatsDelta[] => {
        const [first] = rows;
        if (first === undefined) return [];
        return [
          { _id: report, projectId: first.projectId, kind: "opens", increments: openIncrements(rows, sendTimes) },
        ];
      });
      // While dispatch is unavailable they are only stored and counted; the sweep publishes them later.
      const published = publishOpens(toPublish).catch((error: unknown) => {
        if (!(error instanceof HeraldError && error.code === "service-unavailable")) throw error;
      });
      await Promise.all([storeDeltas(deltas), published]);
    },
  });
