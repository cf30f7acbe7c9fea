import { type Bus, handleRequest } from "@herald/bus";
import { CountOpens, ExportOpens, OpensOfDevices, OpensOfNotifications } from "@herald/contracts";
import type { Open } from "../domain/open.ts";
import { openTotals } from "../domain/stats.ts";
import type { OpenStore } from "../stores/open-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";

/** Below this, opens of one notification are counted exactly. From here on they come from the rollups, a second or two behind. */
const exactBelow = 1_000;

const openTimes = (opens: readonly Open[], key: "deviceId" | "notificationId") => ({
  openedAt: Object.fromEntries(opens.map((open) => [open[key], open.openedAt.toISOString()])),
});

export const handleOpenRequests = (bus: Bus, opens: OpenStore, rollups: RollupStore) => [
  handleRequest(bus, CountOpens, async ({ projectId, notificationIds }) => {
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
    return { counts: Object.fromEntries(counted), totals };
  }),
  handleRequest(bus, ExportOpens, async (wanted) => {
    const found = await opens.export(wanted);
    const rows = found.map(({ _id, notificationId, deviceId, platform, openedAt }) => ({
      id: _id,
      notification_id: notificationId,
      device_id: deviceId,
      ...(platform && { platform }),
      opened_at: openedAt.toISOString(),
    }));
    return {
      rows: rows.map((row) => JSON.stringify(row)),
      next: rows.length < wanted.limit ? null : (rows.at(-1)?.id ?? null),
    };
  }),
  handleRequest(bus, OpensOfDevices, async ({ projectId, notificationId, deviceIds }) => {
    const deliveries = deviceIds.map((deviceId) => ({ notificationId, deviceId }));
    return openTimes(await opens.find(projectId, deliveries), "deviceId");
  }),
  handleRequest(bus, OpensOfNotifications, async ({ projectId, deviceId, notificationIds }) => {
    const deliveries = notificationIds.map((notificationId) => ({ notificationId, deviceId }));
    return openTimes(await opens.find(projectId, deliveries), "notificationId");
  }),
];
