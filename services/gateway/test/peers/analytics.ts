import { CountOpens, type DeviceId, OpensOfDevices } from "@herald/contracts";
import type { Serve } from "./rows.ts";

/** When a device opened a notification, by `<notification>/<device>`. */
export type Opens = Map<string, string>;

/** Analytics' opens. */
export const serveAnalytics = (serve: Serve, opens: Opens): void => {
  serve(CountOpens, ({ notificationIds }) => ({
    counts: Object.fromEntries(
      notificationIds.map((id) => [id, [...opens.keys()].filter((key) => key.startsWith(`${id}/`)).length]),
    ),
  }));
  serve(OpensOfDevices, ({ notificationId, deviceIds }) => ({
    openedAt: Object.fromEntries(
      deviceIds.flatMap((id: DeviceId) => {
        const openedAt = opens.get(`${notificationId}/${id}`);
        return openedAt === undefined ? [] : [[id, openedAt]];
      }),
    ),
  }));
};
