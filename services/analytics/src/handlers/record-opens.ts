import { defineBatchHandler } from "@herald/bus";
import { OpenGroupV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ReportedOpen } from "../domain/open.ts";
import { type Contribution, openParts, reportId } from "../domain/stats-delta.ts";
import type { CountContributions } from "../jobs/aggregate-stats.ts";
import type { EmitOpens } from "../jobs/publish-opens.ts";
import type { NoticeStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";

/** Devices opened a notification: each counts once, and the bus hears of it. */
export const recordOpens = (opens: OpenStore, count: CountContributions, notices: NoticeStore, emit: EmitOpens) =>
  defineBatchHandler({
    durable: "analytics-open-groups", // renaming a durable replays its stream
    message: OpenGroupV1,
    // Up to 1,000 opens in one insert: past that the database gains nothing.
    size: 10,
    waitMs: 5,
    // Inserts overlap with the publishing of what came before them.
    concurrency: 4,
    async handle(deliveries) {
      const reported = deliveries.flatMap(({ data }) => {
        const report = reportId(data);
        return data.opens.map(
          (open): ReportedOpen => ({
            projectId: data.projectId,
            notificationId: open.notificationId,
            deviceId: open.deviceId,
            ...(open.platform === undefined ? {} : { platform: open.platform }),
            openedAt: new Date(open.openedAt),
            report,
          }),
        );
      });
      const { added, toEmit } = await opens.record(reported);
      const since = await notices.sendTimes(added.map(({ notificationId }) => notificationId));
      // By the rows that a report made: a repeat after a crash finds the same ones, and adds the same under the same id.
      const counted = [...Map.groupBy(added, ({ report }) => report)].flatMap(([report, rows]): Contribution[] => {
        const [first] = rows;
        if (first === undefined) return [];
        return [{ _id: report, projectId: first.projectId, kind: "opens", parts: openParts(rows, since) }];
      });
      // Stored and counted as they are; while dispatch is unavailable, the sweep emits them later.
      const emitted = emit(toEmit).catch((error: unknown) => {
        if (!(error instanceof HeraldError && error.code === "service-unavailable")) throw error;
      });
      await Promise.all([count(counted), emitted]);
    },
  });
