import { type Bus, handleRequest, oldestMessageTime } from "@herald/bus";
import {
  type DeviceId,
  type NotificationId,
  OpenGroupV1,
  openRequests,
  type ProjectId,
  receiptRequests,
} from "@herald/contracts";
import type { Report } from "../domain/report.ts";
import { openTotals, reportTotals } from "../domain/stats.ts";
import type { Stores } from "../stores/create-stores.ts";

/** Below this, opens of one notification are counted exactly. From here on they come from the rollups, a second or two behind. */
const exactBelow = 1_000;

type Delivery = { readonly notificationId: NotificationId; readonly deviceId: DeviceId };

const byKey = <Value>(
  reports: readonly Report[],
  key: keyof Delivery,
  readValue: (report: Report) => Value | undefined,
): Record<string, Value> =>
  Object.fromEntries(
    reports.flatMap((report) => {
      const value = readValue(report);
      return value === undefined ? [] : [[report[key], value]];
    }),
  );

const timeOf = ({ at }: Report): string => at.toISOString();

const rowOf = ({ notificationId, deviceId, platform }: Report) => ({
  notification_id: notificationId,
  device_id: deviceId,
  ...(platform && { platform }),
});

const pageOf = (rows: readonly { readonly id: string }[], limit: number) => ({
  rows: rows.map((row) => JSON.stringify(row)),
  next: rows.length < limit ? null : (rows.at(-1)?.id ?? null),
});

export const handleReportRequests = (
  bus: Bus,
  { opens, receipts, rollups }: Pick<Stores, "opens" | "receipts" | "rollups">,
) => {
  /** What devices reported of deliveries, by device or by notification. */
  const timesOf = async (projectId: ProjectId, deliveries: readonly Delivery[], key: keyof Delivery) => {
    const kinds = deliveries.flatMap((one) => [
      { ...one, kind: "received" as const },
      { ...one, kind: "dismissed" as const },
    ]);
    const [opened, reported] = await Promise.all([opens.find(projectId, deliveries), receipts.find(projectId, kinds)]);
    const of = (wanted: Report["kind"]) => reported.filter(({ kind }) => kind === wanted);
    return {
      openedAt: byKey(opened, key, timeOf),
      receivedAt: byKey(of("received"), key, timeOf),
      dismissedAt: byKey(of("dismissed"), key, timeOf),
      buttons: byKey(opened, key, ({ button }) => button),
    };
  };

  return [
    handleRequest(bus, openRequests.count, async ({ projectId, notificationIds }) => {
      const known = await rollups.totals(projectId, notificationIds);
      const counted = await Promise.all(
        notificationIds.map(async (id) => {
          const rolled = known.get(id)?.opened ?? 0;
          // A page of notifications would need one scan for each.
          if (rolled >= exactBelow || notificationIds.length > 1) return [id, rolled] as const;
          // The rollup keeps the count after retention has removed the opens.
          return [id, Math.max(rolled, await opens.count(projectId, id, exactBelow))] as const;
        }),
      );
      const totals = Object.fromEntries([...known].map(([id, figures]) => [id, openTotals(figures)]));
      const reports = Object.fromEntries([...known].map(([id, figures]) => [id, reportTotals(figures)]));
      return { counts: Object.fromEntries(counted), totals, reports };
    }),
    handleRequest(bus, openRequests.export, async (wanted) => {
      const found = await opens.export(wanted);
      const rows = found.map((open) => ({
        id: open._id,
        ...rowOf(open),
        opened_at: timeOf(open),
        ...(open.button !== undefined && { button: open.button }),
      }));
      return pageOf(rows, wanted.limit);
    }),
    handleRequest(bus, receiptRequests.export, async (wanted) => {
      const found = await receipts.export(wanted);
      const rows = found.map((one) => ({ id: one._id, ...rowOf(one), kind: one.kind, at: timeOf(one) }));
      return pageOf(rows, wanted.limit);
    }),
    handleRequest(bus, openRequests.ofDevices, ({ projectId, notificationId, deviceIds }) => {
      const deliveries = deviceIds.map((deviceId) => ({ notificationId, deviceId }));
      return timesOf(projectId, deliveries, "deviceId");
    }),
    handleRequest(bus, openRequests.stored, async ({ projectId, until }) => {
      // A work queue: it has each open until it is stored.
      const oldest = await oldestMessageTime(bus, "PUSH_OPENS", OpenGroupV1.subject({ projectId, opens: [] }));
      return { stored: oldest === undefined || oldest > new Date(until) };
    }),
    handleRequest(bus, openRequests.ofNotifications, ({ projectId, deviceId, notificationIds }) => {
      const deliveries = notificationIds.map((notificationId) => ({ notificationId, deviceId }));
      return timesOf(projectId, deliveries, "notificationId");
    }),
  ];
};
