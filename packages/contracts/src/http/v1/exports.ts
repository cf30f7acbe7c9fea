import { z } from "zod";
import { DeviceId, NotificationId } from "../../ids.ts";
import { named } from "../../named.ts";
import { Platform, WebPushKeys } from "../../platforms.ts";
import { ReceiptKind } from "../../report-groups.ts";
import { Delivery, DeliveryStatus } from "./deliveries.ts";
import { checkMatch, Device, deviceFilterQuery } from "./devices.ts";
import { NewTarget } from "./notification-limits.ts";
import { Notification, notificationFilterQuery } from "./notifications.ts";
import { timeRangeQuery } from "./pagination.ts";

export const ExportFormat = z.enum(["ndjson", "csv"]).meta({ id: "ExportFormat" });
export type ExportFormat = z.infer<typeof ExportFormat>;

/** The query parameters of every export. */
const exportQuery = (id: RegExp, example: string) => ({
  format: ExportFormat.optional().meta({
    description: "Takes precedence over `Accept` (`application/x-ndjson`, `text/csv`). Default: `ndjson`",
  }),
  after: z
    .string()
    .regex(id, `must be empty, or the \`id\` of a row, such as ${example}`)
    .optional()
    .meta({
      description: "Resumes an export: the `id` of the last row that you have. A CSV then has no header row",
      examples: [example],
    }),
});

/** Filters rows of the ledger by notification. */
const ofNotification = {
  notification: NotificationId.optional().meta({ description: "Only rows of this notification" }),
};

const deviceExample = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";
const notificationExample = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";

export const DeviceExportQuery = z
  .strictObject({
    ...exportQuery(/^(dev_[0-9a-z]{26})?$/, deviceExample),
    ...deviceFilterQuery,
    ...timeRangeQuery,
    match: NewTarget.optional().meta({
      description:
        "A target, such as `topic:news`: only the active devices that a send to it reaches, in the order of its batches instead of by `id`. `status` cannot be combined with it",
      examples: ["metadata:plan=pro"],
    }),
    include: z
      .literal("keys")
      .optional()
      .meta({ description: "`keys`: with the keys of Web Push subscriptions, which an import needs" }),
  })
  .superRefine(checkMatch);
export const NotificationExportQuery = z.strictObject({
  ...exportQuery(/^(ntf_[0-9a-z]{26})?$/, notificationExample),
  ...notificationFilterQuery,
  ...timeRangeQuery,
});
export const DeliveryExportQuery = z.strictObject({
  ...exportQuery(/^(ntf_[0-9a-z]{26}(\/\d{1,9}\/\d{1,9}(\/\d{1,9})?:\d{1,9})?)?$/, `${notificationExample}/0/0:7`),
  ...ofNotification,
  status: DeliveryStatus.optional().meta({ description: "Only deliveries with this status" }),
  created_after: timeRangeQuery.created_after.meta({
    description: "Only rows of notifications created at this time or later",
  }),
  created_before: timeRangeQuery.created_before.meta({
    description: "Only rows of notifications created before this time",
  }),
});
export const OpenExportQuery = z.strictObject({
  ...exportQuery(/^(ntf_[0-9a-z]{26}\/dev_[0-9a-z]{26})?$/, `${notificationExample}/${deviceExample}`),
  ...ofNotification,
});

export const ReceiptExportQuery = z.strictObject({
  ...exportQuery(/^(ntf_[0-9a-z]{26}\/dev_[0-9a-z]{26}\/[rd])?$/, `${notificationExample}/${deviceExample}/r`),
  ...ofNotification,
});

/** A row of an export of devices. */
export const ExportedDevice = Device.extend({
  keys: WebPushKeys.optional().meta({ description: "Only with `include=keys`" }),
}).meta({ id: "ExportedDevice" });
export type ExportedDevice = z.infer<typeof ExportedDevice>;

export const ExportedNotification = Notification;

/** A row of an export of deliveries. What devices reported is in the exports of opens and receipts. */
export const ExportedDelivery = z
  .object({ id: z.string().meta({ description: "Of the row, for `after`" }), notification_id: NotificationId })
  .extend(Delivery.omit({ opened_at: true, received_at: true, dismissed_at: true, button: true }).shape)
  .meta({ id: "ExportedDelivery" });
export type ExportedDelivery = z.infer<typeof ExportedDelivery>;

/** A row of an export of opens. */
export const ExportedOpen = named("ExportedOpen", {
  id: z.string().meta({ description: "The id of the row, for `after`: notification and device" }),
  notification_id: NotificationId,
  device_id: DeviceId,
  platform: Platform.optional(),
  opened_at: z.iso.datetime(),
  button: z
    .string()
    .optional()
    .meta({ description: "The button that was pressed; absent: none", examples: ["track"] }),
});

/** A row of an export of receipts and dismissals. */
export const ExportedReceipt = named("ExportedReceipt", {
  id: z.string().meta({ description: "Of the row, for `after`: notification, device, and `r` or `d`" }),
  notification_id: NotificationId,
  device_id: DeviceId,
  platform: Platform,
  kind: ReceiptKind,
  at: z.iso.datetime(),
});

/**
 * Where a spreadsheet would run a formula, whatever quotes precede it: at the beginning of a cell, and after the characters that separate
 * cells in other countries' spreadsheets.
 */
const beginsFormula = /(?<=^|[;\t\r\n])(?=['"]*[=+\-@\t\r])/g;
const addedQuote = /(?<=^|[;\t\r\n])'(?=['"]*[=+\-@\t\r])/g;

/** Text for a CSV cell: a `'` keeps a spreadsheet from running what follows as a formula. {@link fromCsvText} removes every such `'`. */
export const toCsvText = (text: string): string => text.replace(beginsFormula, "'");

export const fromCsvText = (cell: string): string => cell.replace(addedQuote, "");
