import { type Bus, handleRequest } from "@herald/bus";
import { CountOpens, OpensOfDevices } from "@herald/contracts";
import { openTotals } from "../domain/stats.ts";
import type { OpenStore } from "../stores/open-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";

/** Below, the opens of one notification are counted as they are; from here on the rollups answer, which are a second or two behind. */
const exactBelow = 1_000;

/** Answers what others ask about opens. */
export const answerOpens = (bus: Bus, opens: OpenStore, rollups: RollupStore) => [
  handleRequest(bus, CountOpens, async ({ projectId, notificationIds }) => {
    const known = await rollups.totals(projectId, notificationIds);
    const counted = await Promise.all(
      notificationIds.map(async (id) => {
        const rolled = known.get(id)?.opened ?? 0;
        // A page of notifications would be as many scans: it is told by the rollups alone.
        if (rolled >= exactBelow || notificationIds.length > 1) return [id, rolled] as const;
        // Whose opens are gone after their retention is known by the rollups alone.
        return [id, Math.max(rolled, await opens.count(projectId, id, exactBelow))] as const;
      }),
    );
    const totals = Object.fromEntries([...known].map(([id, figures]) => [id, openTotals(figures)]));
    return { counts: Object.fromEntries(counted), totals };
  }),
  handleRequest(bus, OpensOfDevices, async ({ projectId, notificationId, deviceIds }) => {
    const found = await opens.findOfDevices(projectId, notificationId, deviceIds);
    return { openedAt: Object.fromEntries(found.map((open) => [open.deviceId, open.openedAt.toISOString()])) };
  }),
];
