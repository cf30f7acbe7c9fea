import { type Bus, defineBatchHandler, publishEvents, sendRequest } from "@herald/bus";
import { OpenGroupV1, type ProjectId, UsersOfDeliveries } from "@herald/contracts";
import { hasCode, type Logger, type Repeating, repeat } from "@herald/kit";
import { type Open, openedEvent, type ReportedOpen } from "../domain/open.ts";
import { groupsOf, openIncrements, reportId, type StatsDelta } from "../domain/stats-delta.ts";
import type { StoreDeltas } from "../jobs/aggregate-stats.ts";
import type { NotificationFactsStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";

export type PublishOpens = (opens: readonly Open[]) => Promise<void>;

/** The limit of one UsersOfDeliveries request. */
const publishPage = 1_000;
const everyMs = 5_000;
/** An open whose publish is in progress is never older. */
const graceMs = 10_000;
const sweepPage = 1_000;

/** Builds events with data from dispatch: the users of the devices at the time of the send, and the tags of the notifications. */
const openedEvents = async (bus: Bus, projectId: ProjectId, opens: readonly Open[]) => {
  const deliveries = opens.map(({ notificationId, deviceId }) => ({ notificationId, deviceId }));
  const { users, tags = {} } = await sendRequest(bus, UsersOfDeliveries, { projectId, deliveries });
  return opens.map((open, at) => openedEvent(open, users[at], tags[open.notificationId]));
};

/**
 * Publishes `notification.opened`, then marks the opens. After a crash in between, they are published again under the same event
 * ids, which the stream or the consumer drops.
 * @throws HeraldError `service-unavailable` while dispatch does not answer; the opens stay stored, and the sweep publishes them.
 */
export const createPublishOpens =
  (bus: Bus, store: OpenStore): PublishOpens =>
  async (opens) => {
    for (const [projectId, own] of Map.groupBy(opens, (open) => open.projectId))
      for (let from = 0; from < own.length; from += publishPage) {
        const page = own.slice(from, from + publishPage);
        await publishEvents(bus, await openedEvents(bus, projectId, page));
        await store.markPublished(page);
      }
  };

/** Publishes opens that a crash left in the database without their event. */
export const sweepOpens = (store: OpenStore, publishOpens: PublishOpens, log: Logger, now: () => Date): Repeating =>
  repeat("publish opens that a crash left", everyMs, log, async (signal) => {
    while (!signal.aborted) {
      const left = await store.findUnpublished(new Date(now().getTime() - graceMs), sweepPage);
      if (left.length === 0) return;
      await publishOpens(left);
      log.info({ opens: left.length }, "published opens that a crash left");
    }
  });

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
    // Inserts overlap with the publishing of earlier opens.
    concurrency: 4,
    async handle(deliveries) {
      const reported = deliveries.flatMap(({ data }) => {
        const report = reportId(data);
        return data.opens.map(({ notificationId, deviceId, platform, openedAt }): ReportedOpen => {
          const { projectId } = data;
          return { projectId, notificationId, deviceId, platform, openedAt: new Date(openedAt), report };
        });
      });
      const { added, toPublish } = await opens.record(reported);
      const sendTimes = await notificationFacts.sendTimes(added.map(({ notificationId }) => notificationId));
      // Computed from the rows that a report added: a repeat after a crash finds the same rows and makes the same delta.
      const deltas = groupsOf(added, ({ report }) => report).map((rows): StatsDelta => {
        const [{ report: _id, projectId }] = rows;
        return { _id, projectId, kind: "opens", increments: openIncrements(rows, sendTimes) };
      });
      // While dispatch is unavailable, opens are only stored and counted; the sweep publishes them later.
      const published = publishOpens(toPublish).catch((error: unknown) => {
        if (!hasCode(error, "service-unavailable")) throw error;
      });
      await Promise.all([storeDeltas(deltas), published]);
    },
  });
