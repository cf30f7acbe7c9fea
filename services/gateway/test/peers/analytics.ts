import { CountOpens, type DeviceId, GetStats, OpensOfDevices } from "@herald/contracts";
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
  serve(GetStats, ({ request: { from, to, interval, timeZone } }) => ({
    from,
    to,
    interval,
    time_zone: timeZone,
    series: [],
    totals: { sent: 0, failed: 0, opened: 0, open_rate: null, failures: {} },
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
