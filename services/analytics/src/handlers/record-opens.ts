import { type Bus, defineBatchHandler, type MessageDelivery, publishEvents, sendRequest } from "@herald/bus";
import {
  type DataOf,
  type NotificationId,
  OpenGroupV1,
  type OutboxEvent,
  type ProjectId,
  type Tag,
  UsersOfDeliveries,
} from "@herald/contracts";
import { openedEvent, type ReportedOpen } from "../domain/open.ts";
import { groupsOf, openIncrements, reportId, type StatsDelta, taggedOpenIncrements } from "../domain/stats-delta.ts";
import type { StoreDeltas } from "../jobs/aggregate-stats.ts";
import type { NotificationFactsStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";

const reportedOpens = ({ data }: MessageDelivery<DataOf<typeof OpenGroupV1>>): ReportedOpen[] => {
  const report = reportId(data);
  const { projectId } = data;
  return data.opens.map(({ notificationId, deviceId, platform, openedAt }) => {
    return { projectId, notificationId, deviceId, platform, openedAt: new Date(openedAt), report };
  });
};

/** What only dispatch knows of the opens of a project: the users of the devices at the time of the send, and the tags of the notifications. */
const describeOpens = async (bus: Bus, projectId: ProjectId, opens: readonly ReportedOpen[]) => {
  const deliveries = opens.map(({ notificationId, deviceId }) => ({ notificationId, deviceId }));
  const { users, tags = {} } = await sendRequest(bus, UsersOfDeliveries, { projectId, deliveries });
  return {
    events: opens.map((open, at): OutboxEvent => openedEvent(open, users[at], tags[open.notificationId])),
    tags: Object.entries(tags) as [NotificationId, Tag[]][],
  };
};

/**
 * Stores each open once, counts it, and publishes its event. The message is the outbox of its opens: it is acked after the publish, and
 * a repeat finds the opens that it added, and publishes them under the same ids. The publish is the last step, so that no other failure
 * repeats it: the stream drops repeats for two minutes only.
 */
export const recordOpens = (
  bus: Bus,
  opens: OpenStore,
  storeDeltas: StoreDeltas,
  notificationFacts: NotificationFactsStore,
) => {
  type Report = readonly [ReportedOpen, ...ReportedOpen[]];

  const countOpens = async (reports: readonly Report[]): Promise<void> => {
    const ids = reports.flatMap((rows) => rows.map(({ notificationId }) => notificationId));
    const sendTimes = await notificationFacts.sendTimes(ids);
    // Computed from the rows that a report added: a repeat after a crash finds the same rows and makes the same delta.
    const deltas = reports.map((rows): StatsDelta => {
      const [{ report: _id, projectId }] = rows;
      return { _id, projectId, kind: "opens", increments: openIncrements(rows, sendTimes) };
    });
    await storeDeltas(deltas);
  };

  /** Counts the opens by kind and label, and publishes them. */
  const publishOpens = async (reports: readonly Report[]): Promise<void> => {
    const projects = groupsOf(reports.flat(), ({ projectId }) => projectId);
    const described = await Promise.all(projects.map((own) => describeOpens(bus, own[0].projectId, own)));
    const tags = new Map(described.flatMap((one) => one.tags));
    const deltas = reports.flatMap((rows): StatsDelta[] => {
      const [{ report, projectId }] = rows;
      const increments = taggedOpenIncrements(rows, (id) => tags.get(id) ?? []);
      return increments.length === 0 ? [] : [{ _id: `${report}/tags`, projectId, kind: "taggedOpens", increments }];
    });
    await storeDeltas(deltas);
    const events = described.flatMap((one) => one.events);
    await publishEvents(bus, events);
  };

  return defineBatchHandler({
    durable: "analytics-open-groups", // renaming a durable replays its stream
    message: OpenGroupV1,
    // Up to 1,000 opens in one insert, one request and one publish; more gain nothing, and a request takes no more.
    size: 10,
    waitMs: 5,
    // Inserts overlap with the publishing of earlier opens.
    concurrency: 4,
    async handle(deliveries) {
      const added = await opens.record(deliveries.flatMap(reportedOpens));
      const reports = groupsOf(added, ({ report }) => report);
      await countOpens(reports);
      // While dispatch is unavailable, opens are stored and counted, and only this step is repeated.
      await deliveries[0]?.hold(() => publishOpens(reports));
    },
  });
};
