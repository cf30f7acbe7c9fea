import { type Bus, handleRequest } from "@herald/bus";
import { CountOpens, ExportOpens, OpensOfDevices, OpensOfNotifications } from "@herald/contracts";
import { openTotals } from "../domain/stats.ts";
import type { OpenStore } from "../stores/open-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";

/** Fewer opens of one notification are counted exactly; more come from the rollups, which are a second or two behind. */
const exactBelow = 1_000;

export const handleOpenRequests = (bus: Bus, opens: OpenStore, rollups: RollupStore) => [
  handleRequest(bus, CountOpens, async ({ projectId, notificationIds }) => {
    const known = await rollups.totals(projectId, notificationIds);
    const counted = await Promise.all(
      notificationIds.map(async (id) => {
        const rolled = known.get(id)?.opened ?? 0;
        // A page of notifications would need as many scans.
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
    const found = await opens.find(
      projectId,
      deviceIds.map((deviceId) => ({ notificationId, deviceId })),
    );
    return { openedAt: Object.fromEntries(found.map((open) => [open.deviceId, open.openedAt.toISOString()])) };
  }),
  handleRequest(bus, OpensOfNotifications, async ({ projectId, deviceId, notificationIds }) => {
    const found = await opens.find(
      projectId,
      notificationIds.map((notificationId) => ({ notificationId, deviceId })),
    );
    return { openedAt: Object.fromEntries(found.map((open) => [open.notificationId, open.openedAt.toISOString()])) };
  }),
];
