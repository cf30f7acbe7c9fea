import { type DeviceId, openRequests, receiptRequests, statsRequests } from "@herald/contracts";
import type { Serve } from "./rows.ts";

/** When a device opened a notification, by `<notification>/<device>`. */
export type Opens = Map<string, string>;

/** Analytics' opens. */
export const serveAnalytics = (serve: Serve, opens: Opens): void => {
  serve(openRequests.count, ({ notificationIds }) => {
    const timesOf = (id: string) => [...opens].filter(([key]) => key.startsWith(`${id}/`)).map(([, at]) => at);
    const opened = notificationIds.map((id) => [id, timesOf(id).toSorted()] as const);
    return {
      counts: Object.fromEntries(opened.map(([id, times]) => [id, times.length])),
      totals: Object.fromEntries(
        opened.flatMap(([id, times]) =>
          times.length === 0 ? [] : [[id, { first_opened_at: times.at(0), last_opened_at: times.at(-1) }]],
        ),
      ),
    };
  });
  serve(openRequests.export, () => ({ rows: [], next: null }));
  serve(receiptRequests.export, () => ({ rows: [], next: null }));
  serve(statsRequests.get, ({ request: { from, to, interval, timeZone } }) => ({
    from,
    to,
    interval,
    time_zone: timeZone,
    series: [],
    totals: {
      sent: 0,
      failed: 0,
      opened: 0,
      receipts_asked: 0,
      received: 0,
      dismissed: 0,
      open_rate: null,
      failures: {},
    },
  }));
  serve(openRequests.ofNotifications, ({ notificationIds, deviceId }) => ({
    openedAt: Object.fromEntries(
      notificationIds.flatMap((id) => {
        const openedAt = opens.get(`${id}/${deviceId}`);
        return openedAt === undefined ? [] : [[id, openedAt]];
      }),
    ),
  }));
  serve(openRequests.ofDevices, ({ notificationId, deviceIds }) => ({
    openedAt: Object.fromEntries(
      deviceIds.flatMap((id: DeviceId) => {
        const openedAt = opens.get(`${notificationId}/${id}`);
        return openedAt === undefined ? [] : [[id, openedAt]];
      }),
    ),
  }));
};
