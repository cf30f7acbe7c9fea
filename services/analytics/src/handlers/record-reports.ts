import { type Bus, defineBatchHandler, type Handler, publishEvents, sendRequest } from "@herald/bus";
import {
  type DataOf,
  deliveryRequests,
  type MessageContract,
  type NotificationId,
  OpenGroupV1,
  type OutboxEvent,
  type ProjectId,
  ReceiptGroupV1,
  type Tag,
} from "@herald/contracts";
import { type GroupedReport, openedEvent, type ReportFacts, receiptEvent, reportRowId } from "../domain/report.ts";
import {
  buttonIncrements,
  groupsOf,
  reportId,
  reportIncrements,
  type StatsDelta,
  taggedIncrements,
} from "../domain/stats-delta.ts";
import type { StoreDeltas } from "../jobs/aggregate-stats.ts";
import type { NotificationFactsStore } from "../stores/notification-facts-store.ts";
import type { ReportStore } from "../stores/report-store.ts";

type Deps = {
  readonly bus: Bus;
  readonly storeDeltas: StoreDeltas;
  readonly notificationFacts: Pick<NotificationFactsStore, "sendTimes">;
};

type Group = readonly [GroupedReport, ...GroupedReport[]];

/** What is different between opens and receipts. */
type Kind<Message extends MessageContract> = {
  readonly durable: "analytics-open-groups" | "analytics-receipt-groups";
  readonly message: Message;
  readonly deltas: "opens" | "receipts";
  /** How long the first message of a batch waits for others, and how many batches are handled at a time. */
  readonly pace: { readonly waitMs: number; readonly concurrency: number };
  readonly reportsOf: (data: DataOf<Message>) => GroupedReport[];
  readonly eventsOf: (group: Group, factsOf: (report: GroupedReport) => ReportFacts) => OutboxEvent[];
};

/**
 * Stores each report once, counts it, and publishes its event. The message is the outbox of its reports: it is acked after the publish,
 * and a repeat finds the reports that it added, and publishes them under the same ids. The publish is the last step, so that no other
 * failure repeats it: the stream drops repeats for two minutes only.
 */
const recordReports = <Message extends MessageContract>(
  { bus, storeDeltas, notificationFacts }: Deps,
  store: ReportStore,
  { durable, message, deltas: kind, pace, reportsOf, eventsOf }: Kind<Message>,
): Handler => {
  /** What only dispatch knows of reports of a project: the users of the devices at the time of the send, tags, and buttons. */
  const describe = async (projectId: ProjectId, reports: readonly GroupedReport[]) => {
    const deliveries = reports.map(({ notificationId, deviceId }) => ({ notificationId, deviceId }));
    const buttonsOf = [...new Set(reports.flatMap(({ button, notificationId }) => (button ? [notificationId] : [])))];
    const asked = { projectId, deliveries, ...(buttonsOf.length > 0 && { buttonsOf }) };
    const { users, tags = {}, buttons = {} } = await sendRequest(bus, deliveryRequests.users, asked);
    const userOf = new Map(reports.map((report, at) => [reportRowId(report), users[at] ?? null]));
    return {
      factsOf: (report: GroupedReport): ReportFacts => ({
        userId: userOf.get(reportRowId(report)) ?? null,
        tags: tags[report.notificationId] ?? [],
      }),
      tagsOf: (id: NotificationId) => (tags[id] ?? []) as Tag[],
      isButton: ({ notificationId, button }: GroupedReport) =>
        button !== undefined && (buttons[notificationId] ?? []).includes(button),
    };
  };

  const count = async (groups: readonly Group[]): Promise<void> => {
    const ids = groups.flatMap((rows) => rows.map(({ notificationId }) => notificationId));
    const sendTimes = await notificationFacts.sendTimes(ids);
    // Computed from the rows that a report added: a repeat after a crash finds the same rows and makes the same delta.
    const deltas = groups.map((rows): StatsDelta => {
      const [{ report: _id, projectId }] = rows;
      return { _id, projectId, kind, increments: reportIncrements(rows, sendTimes) };
    });
    await storeDeltas(deltas);
  };

  /** Counts the reports by kind, label and button, and publishes them. */
  const publish = async (groups: readonly Group[]): Promise<void> => {
    const projects = groupsOf(groups.flat(), ({ projectId }) => projectId);
    const described = new Map(
      await Promise.all(
        projects.map(async (own) => [own[0].projectId, await describe(own[0].projectId, own)] as const),
      ),
    );
    const found = groups.flatMap((rows) => {
      const facts = described.get(rows[0].projectId);
      return facts === undefined ? [] : [{ rows, facts }];
    });
    // A device may send any id: an open counts with a button of its notification alone.
    await store.removeButtons(
      found.flatMap(({ rows, facts }) => rows.filter((row) => row.button !== undefined && !facts.isButton(row))),
    );
    const valid = found.map(({ rows, facts }) => ({
      rows: rows.map((row) => {
        const { button: _, ...rest } = row;
        return facts.isButton(row) ? row : rest;
      }) as unknown as Group,
      facts,
    }));
    const deltas = valid.flatMap(({ rows, facts }): StatsDelta[] => {
      const [{ report, projectId }] = rows;
      const increments = [...taggedIncrements(rows, facts.tagsOf), ...buttonIncrements(rows)];
      return increments.length === 0
        ? []
        : [{ _id: `${report}/tags`, projectId, kind: kind === "opens" ? "taggedOpens" : "taggedReceipts", increments }];
    });
    await storeDeltas(deltas);
    await publishEvents(
      bus,
      valid.flatMap(({ rows, facts }) => eventsOf(rows, facts.factsOf)),
    );
  };

  return defineBatchHandler({
    durable, // renaming a durable replays its stream
    message,
    // Up to 1,000 reports in one insert, one request and one publish; more gain nothing, and a request takes no more.
    size: 10,
    ...pace,
    async handle(deliveries) {
      const added = await store.record(deliveries.flatMap(({ data }) => reportsOf(data as DataOf<Message>)));
      const groups = groupsOf(added, ({ report }) => report);
      await count(groups);
      // While dispatch is unavailable, reports are stored and counted, and only this step is repeated.
      await deliveries[0]?.hold(() => publish(groups));
    },
  });
};

export const recordOpens = (deps: Deps, opens: ReportStore): Handler =>
  recordReports(deps, opens, {
    durable: "analytics-open-groups",
    message: OpenGroupV1,
    deltas: "opens",
    // Inserts overlap with the publishing of earlier opens.
    pace: { waitMs: 5, concurrency: 4 },
    reportsOf: (data) => {
      const report = reportId(data.projectId, data.opens);
      return data.opens.map(({ openedAt, ...open }) => ({
        ...open,
        projectId: data.projectId,
        at: new Date(openedAt),
        report,
      })) as GroupedReport[];
    },
    eventsOf: (group, factsOf) => group.map((open) => openedEvent(open, factsOf(open))),
  });

export const recordReceipts = (deps: Deps, receipts: ReportStore): Handler =>
  recordReports(deps, receipts, {
    durable: "analytics-receipt-groups",
    message: ReceiptGroupV1,
    deltas: "receipts",
    // Receipts come while their broadcast is sent. In full batches, one at a time, they leave the databases to sends and opens.
    pace: { waitMs: 1_000, concurrency: 1 },
    reportsOf: (data) => {
      const report = reportId(data.projectId, data.receipts);
      return data.receipts.map((receipt) => ({
        ...receipt,
        projectId: data.projectId,
        at: new Date(receipt.at),
        report,
      }));
    },
    eventsOf: (group, factsOf) =>
      groupsOf(group, ({ notificationId, platform, kind }) => `${notificationId}/${platform}/${kind}`).map((receipts) =>
        receiptEvent(receipts, factsOf),
      ),
  });
