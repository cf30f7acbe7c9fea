import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { DeliveryStatus } from "../http/v1/deliveries.ts";
import { deviceFilterQuery } from "../http/v1/devices.ts";
import { Import, ImportFormat } from "../http/v1/imports.ts";
import { LineError } from "../http/v1/lines.ts";
import { notificationFilterQuery } from "../http/v1/notifications.ts";
import { timeRange } from "../http/v1/pagination.ts";
import { ImportId, NotificationId, ProjectId } from "../ids.ts";

const one = { projectId: ProjectId, importId: ImportId };

/** The gateway creates the id, so that a repeat creates the same import. */
export const CreateImportRequest = defineRequest(
  "registry.imports.create",
  { ...one, format: ImportFormat, dryRun: z.boolean() },
  Import,
);
export const GetImport = defineRequest("registry.imports.get", one, Import);
export const ListImports = defineList("registry.imports.list", { projectId: ProjectId }, Import);
export const ListImportErrors = defineList("registry.imports.errors", one, LineError);

/** The maximum number of rows in one answer. A service sends fewer if they are large. */
export const maxExportRows = 1_000;

const page = {
  projectId: ProjectId,
  /** The id of the row before the page; absent for the first page. */
  after: z.string().optional(),
  limit: z.number().int().min(1).max(maxExportRows),
};

/** Rows as JSON: a service serializes each row once, and the gateway forwards the text. */
const answer = z.object({
  rows: z.array(z.string()),
  /** `after` of the next page: the id of the last row, or the position of a walk; null after the last page. */
  next: z.string().nullable(),
});

/** Rows are `ExportedDevice`. */
export const ExportDevices = defineRequest(
  "registry.devices.export",
  {
    ...page,
    ...deviceFilterQuery,
    ...timeRange,
    keys: z.boolean(),
    /** A target that the devices match. Then `after` is a device or the `next` of an answer, and a page before the last may be empty. */
    match: z.string().optional(),
  },
  answer,
  ({ match }) => match !== undefined,
);
/** Rows are `Notification` without opens, as in `ListNotifications`. */
export const ExportNotifications = defineRequest(
  "dispatch.notifications.export",
  { ...page, ...notificationFilterQuery, ...timeRange },
  answer,
);
/** Rows are `ExportedDelivery`. */
export const ExportDeliveries = defineRequest(
  "dispatch.deliveries.export",
  {
    ...page,
    ...timeRange,
    notificationId: NotificationId.optional(),
    status: DeliveryStatus.optional(),
  },
  answer,
);
/** Rows are `ExportedOpen`. */
export const ExportOpens = defineRequest(
  "analytics.opens.export",
  { ...page, notificationId: NotificationId.optional() },
  answer,
);
/** Rows are `ExportedReceipt`. */
export const ExportReceipts = defineRequest(
  "analytics.receipts.export",
  { ...page, notificationId: NotificationId.optional() },
  answer,
);
