import {
  DeliveryExportQuery,
  DeviceExportQuery,
  deliveryRequests,
  deviceRequests,
  ExportedDelivery,
  ExportedDevice,
  ExportedNotification,
  ExportedOpen,
  ExportedReceipt,
  type ExportFormat,
  type Notification,
  NotificationExportQuery,
  notificationRequests,
  OpenExportQuery,
  openRequests,
  type ProjectId,
  ReceiptExportQuery,
  receiptRequests,
} from "@herald/contracts";
import type { z } from "zod";
import { project, shareOwner } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { pageRequest } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { acceptsGzip, type ExportPage, preferredFormat, rowFormat } from "../streams/export-streams.ts";
import { withOpensOfAll } from "./notification-routes.ts";

const download = ["application/x-ndjson", "text/csv"] as const;

const describe = (sorted: string) =>
  `Streams every row as NDJSON, or as CSV with a header row, sorted ${sorted}, in gzip if \`Accept-Encoding\` has it. The body has no end when the export fails: resume it with \`after\`, the \`id\` of the last whole row. In a CSV, lists and objects are JSON, and a \`'\` stands before each \`=\`, \`+\`, \`-\`, \`@\`, tab or carriage return that begins a cell or follows a \`;\`, a tab or a line break in it; imports remove it. Clients that stop reading are disconnected.`;

/** Notifications per request to analytics for their opens. */
const opensAtATime = 100;

/** Throws validation-failed when the range is empty. */
const timeRangeOf = ({ created_after, created_before }: Parameters<typeof pageRequest>[0]) => {
  const { createdAfter, createdBefore } = pageRequest({ created_after, created_before });
  return { createdAfter, createdBefore };
};

type TimeRange = Parameters<typeof pageRequest>[0];
type ExportQuery = Pick<TimeRange, "created_after" | "created_before"> & {
  readonly format?: ExportFormat | undefined;
  readonly after?: string | undefined;
};
type Page = ReturnType<typeof timeRangeOf> & {
  readonly projectId: ProjectId;
  readonly after?: string;
  readonly limit: number;
};

type Export<Query extends z.ZodType<ExportQuery>> = {
  readonly operation: string;
  /** The end of its path, and what its rows are. */
  readonly rows: string;
  readonly summary: string;
  /** By `id`, if it is absent. */
  readonly sorted?: string;
  readonly query: Query;
  readonly row: z.ZodObject;
  readonly read: (deps: RouteDeps, page: Page, query: z.output<Query>) => Promise<ExportPage>;
};

const defineExport = <Query extends z.ZodType<ExportQuery>>({
  operation,
  rows,
  summary,
  sorted = "by `id`",
  query: schema,
  row,
  read,
}: Export<Query>) =>
  defineRoute(operation, `get /api/v1/exports/${rows}`, {
    summary,
    description: describe(sorted),
    access: project("export"),
    query: schema,
    responses: { 200: { description: `The ${rows}`, schema: row, download } },
    handle: async (deps, { caller, query, message: { headers }, recheck }) => {
      const format = rowFormat(query.format ?? preferredFormat(headers.accept), row);
      const gzip = acceptsGzip(headers["accept-encoding"]);
      const range = timeRangeOf(query);
      const body = await deps.exportStreams.open({
        ...{ owner: shareOwner(caller), format, gzip, after: query.after || undefined, recheck },
        read: (after, limit) =>
          read(deps, { projectId: caller.projectId, limit, ...(after !== undefined && { after }), ...range }, query),
      });
      return {
        status: 200 as const,
        body,
        headers: {
          "content-type": format.contentType,
          vary: "accept, accept-encoding",
          ...(gzip && { "content-encoding": "gzip" }),
        },
      };
    },
  });

export const exportRoutes = [
  defineExport({
    operation: "exportDevices",
    rows: "devices",
    summary: "Export devices",
    sorted: "by `id`, or as a send meets them with `match`",
    query: DeviceExportQuery,
    row: ExportedDevice,
    read: ({ sendRequest }, page, { status, platform, user_id, token, app, match, include }) => {
      const filter = { status, platform, user_id, token, app, match };
      return sendRequest(deviceRequests.export, { ...page, ...filter, keys: include === "keys" });
    },
  }),
  defineExport({
    operation: "exportNotifications",
    rows: "notifications",
    summary: "Export notifications with their counts",
    query: NotificationExportQuery,
    row: ExportedNotification,
    read: async (deps, page, { status, kind, label, push_type }) => {
      const filter = { status, kind, label, push_type };
      const { rows, next } = await deps.sendRequest(notificationRequests.export, { ...page, ...filter });
      const found = rows.map((row) => JSON.parse(row) as Notification);
      const pages = Array.from({ length: Math.ceil(found.length / opensAtATime) }, (_, at) =>
        withOpensOfAll(deps, page.projectId, found.slice(at * opensAtATime, (at + 1) * opensAtATime)),
      );
      return { rows: (await Promise.all(pages)).flat().map((row) => JSON.stringify(row)), next };
    },
  }),
  defineExport({
    operation: "exportDeliveries",
    rows: "deliveries",
    summary: "Export deliveries: the result of each notification for each device",
    query: DeliveryExportQuery,
    row: ExportedDelivery,
    read: ({ sendRequest }, page, { notification: notificationId, status }) =>
      sendRequest(deliveryRequests.export, { ...page, notificationId, status }),
  }),
  defineExport({
    operation: "exportOpens",
    rows: "opens",
    summary: "Export opens: who opened which notification, and when",
    sorted: "by time, or by `id` with `notification`",
    query: OpenExportQuery,
    row: ExportedOpen,
    read: ({ sendRequest }, page, { notification: notificationId }) =>
      sendRequest(openRequests.export, { ...page, notificationId }),
  }),
  defineExport({
    operation: "exportReceipts",
    rows: "receipts",
    summary: "Export receipts and dismissals: which notification arrived where, and when",
    sorted: "by time, or by `id` with `notification`",
    query: ReceiptExportQuery,
    row: ExportedReceipt,
    read: ({ sendRequest }, page, { notification: notificationId }) =>
      sendRequest(receiptRequests.export, { ...page, notificationId }),
  }),
];
