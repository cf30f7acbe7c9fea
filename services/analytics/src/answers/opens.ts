import { answer, type Bus } from "@herald/bus";
import { CountOpens, OpensOfDevices } from "@herald/contracts";
import type { OpenStore } from "../stores/open-store.ts";

/** Answers what others ask about opens. */
export const answerOpens = (bus: Bus, opens: OpenStore) => [
  answer(bus, CountOpens, async ({ projectId, notificationIds }) => {
    const counted = await Promise.all(
      notificationIds.map(async (id) => [id, await opens.count(projectId, id)] as const),
    );
    return { counts: Object.fromEntries(counted) };
  }),
  answer(bus, OpensOfDevices, async ({ projectId, notificationId, deviceIds }) => {
    const found = await opens.findOfDevices(projectId, notificationId, deviceIds);
    return { openedAt: Object.fromEntries(found.map((open) => [open.deviceId, open.openedAt.toISOString()])) };
  }),
];
