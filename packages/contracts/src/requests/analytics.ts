import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { OpenTotals, Stats, StatsRequest } from "../http/v1/stats.ts";
import { DeviceId, NotificationId, ProjectId } from "../ids.ts";

/** How many devices opened each of up to 100 notifications, and what else is known of their opens. */
export const CountOpens = defineRequest(
  "analytics.opens.count",
  z.object({ projectId: ProjectId, notificationIds: z.array(NotificationId).min(1).max(100) }),
  z.object({
    counts: z.record(z.string(), z.number().int().min(0)),
    /** Absent for a notification without opens, and when analytics is older than the field. */
    totals: z.record(z.string(), OpenTotals).optional(),
  }),
);

/** When each of up to 1,000 devices opened one notification; devices that did not are absent. */
export const OpensOfDevices = defineRequest(
  "analytics.opens.of-devices",
  z.object({ projectId: ProjectId, notificationId: NotificationId, deviceIds: z.array(DeviceId).min(1).max(1000) }),
  z.object({ openedAt: z.record(z.string(), z.iso.datetime()) }),
);

/** When one device opened each of up to 100 notifications; those that it did not open are absent. */
export const OpensOfNotifications = defineRequest(
  "analytics.opens.of-notifications",
  z.object({ projectId: ProjectId, deviceId: DeviceId, notificationIds: z.array(NotificationId).min(1).max(100) }),
  z.object({ openedAt: z.record(z.string(), z.iso.datetime()) }),
);

/** Figures of so many days are read in milliseconds, but for a topic, which takes those of each of its notifications, and for groups. */
const fewDays = 35;
const dayMs = 86_400_000;

/** What was sent, failed and opened in a range of time; at most 10 s behind. Nothing known is zeros, not an error. */
export const GetStats = defineRequest(
  "analytics.stats.get",
  z.object({ projectId: ProjectId, request: StatsRequest }),
  Stats,
  ({ request: { topic, by, from, to } }) =>
    topic !== undefined ||
    (by !== undefined && by !== "platform") ||
    Date.parse(to) - Date.parse(from) > fewDays * dayMs,
);
