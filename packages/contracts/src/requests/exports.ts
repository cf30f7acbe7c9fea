import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { deviceFilterQuery } from "../http/v1/devices.ts";
import { DeliveryStatus, notificationFilterQuery } from "../http/v1/notifications.ts";
import { timeRange } from "../http/v1/pagination.ts";
import { NotificationId, ProjectId } from "../ids.ts";

/** Rows in one answer. A service sends fewer when they are large. */
export const maxExportRows = 1_000;

const page = {
  projectId: ProjectId,
  /** The id of the row before the first; absent to begin. */
  after: z.string().optional(),
  limit: z.number().int().min(1).max(maxExportRows),
};

/** Rows as JSON: a service writes each once, and the gateway passes them on. */
const answer = z.object({
  rows: z.array(z.string()),
  /** Where the next page begins, for `after`: the id of the last row, or the position of a walk; null: there are no more. */
  next: z.string().nullable(),
});

/** Rows are `ExportedDevice`. */
export const ExportDevices = defineRequest(
  "registry.devices.export",
  z.object({
    ...page,
    ...deviceFilterQuery,
    ...timeRange,
    keys: z.boolean(),
    /** A target that the devices match: `after` is a device or the `next` of an answer, and a page may be empty before the end. */
    match: z.string().optional(),
  }),
  answer,
  ({ match }) => match !== undefined,
);
/** Rows are `Notification` without opens, as in `ListNotifications`. */
export const ExportNotifications = defineRequest(
  "dispatch.notifications.export",
  z.object({ ...page, ...notificationFilterQuery, ...timeRange }),
  answer,
);
/** Rows are `ExportedDelivery`. */
export const ExportDeliveries = defineRequest(
  "dispatch.deliveries.export",
  z.object({
    ...page,
    ...timeRange,
    notificationId: NotificationId.optional(),
    status: DeliveryStatus.optional(),
  }),
  answer,
);
/** Rows are `ExportedOpen`. */
export const ExportOpens = defineRequest(
  "analytics.opens.export",
  z.object({ ...page, notificationId: NotificationId.optional() }),
  answer,
);
