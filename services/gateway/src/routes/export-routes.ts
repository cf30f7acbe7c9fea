import {
  DeviceExportQuery,
  deliveryExportQuery,
  ExportDeliveries,
  ExportDevices,
  ExportedDelivery,
  ExportedDevice,
  ExportedNotification,
  ExportedOpen,
  ExportedReceipt,
  type ExportFormat,
  ExportNotifications,
  ExportOpens,
  ExportReceipts,
  type Notification,
  notificationExportQuery,
  openExportQuery,
  type ProjectId,
  receiptExportQuery,
} from "@herald/contracts";
import { z } from "zod";
import { type CallerOf, project, shareOwner } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { pageRequest } from "../http/reply.ts";
import { defineRoute, type HandledRequest } from "../http/route.ts";
import { acceptsGzip, type ExportPage, preferredFormat, rowFormat } from "../streams/export-streams.ts";
import { withOpensOfAll } from "./notification-routes.ts";

const download = ["application/x-ndjson", "text/csv"] as const;

const description =
  "Streams every row as NDJSON, or as CSV with a header row, sorted by `id`, in gzip if `Accept-Encoding` has it. The body has no end when the export fails: resume it with `after`, the `id` of the last whole row. In a CSV, lists and objects are JSON, and a `'` stands before each `=`, `+`, `-`, `@`, tab or carriage return that begins a cell or follows a `;`, a tab or a line break in it; imports remove it. Clients that stop reading are disconnected.";

type Request = Pick<HandledRequest, "message" | "recheck"> & {
  readonly caller: CallerOf<"project">;
  readonly query: { readonly format?: ExportFormat | undefined; readonly after?: string | undefined };
};

/** Notifications per request to analytics for their opens. */
const opensAtATime = 100;

/** Throws validation-failed when the range is empty. */
const timeRangeOf = ({ created_after, created_before }: Parameters<typeof pageRequest>[0]) => {
  const { createdAfter, createdBefore } = pageRequest({ created_after, created_before });
  return { createdAfter, createdBefore };
};

type Read = (page: { projectId: ProjectId; after?: string; limit: number }) => Promise<ExportPage>;

const exportReply = async (
  { exportStreams }: Pick<RouteDeps, "exportStreams">,
  { caller, query, message: { headers }, recheck }: Request,
  row: z.ZodObject,
  read: Read,
) => {
  const format = rowFormat(query.format ?? preferredFormat(headers.accept), row);
  const gzip = acceptsGzip(headers["accept-encoding"]);
  const after = query.after === "" ? undefined : query.after;
  const body = await exportStreams.open({
    ...{ owner: shareOwner(caller), format, gzip, after, recheck },
    read: (from, limit) => read({ projectId: caller.projectId, limit, ...(from === undefined ? {} : { after: from }) }),
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
};

export const exportRoutes = [
  defineRoute("exportDevices", "get /api/v1/exports/devices", {
    summary: "Export devices",
    description: description.replace("sorted by `id`", "sorted by `id`, or as a send meets them with `match`"),
    access: project("export"),
    query: DeviceExportQuery,
    responses: { 200: { description: "The devices", schema: ExportedDevice, download } },
    handle: (deps, request) => {
      const { status, platform, user_id, token, app, match, include } = request.query;
      const filter = {
        status,
        platform,
        user_id,
        token,
        app,
        match,
        ...timeRangeOf(request.query),
        keys: include === "keys",
      };
      return exportReply(deps, request, ExportedDevice, (page) =>
        deps.sendRequest(ExportDevices, { ...page, ...filter }),
      );
    },
  }),
  defineRoute("exportNotifications", "get /api/v1/exports/notifications", {
    summary: "Export notifications with their counts",
    description,
    access: project("export"),
    query: z.strictObject(notificationExportQuery),
    responses: { 200: { description: "The notifications", schema: ExportedNotification, download } },
    handle: (deps, request) => {
      const { status, kind, label, push_type } = request.query;
      const filter = { status, kind, label, push_type, ...timeRangeOf(request.query) };
      return exportReply(deps, request, ExportedNotification, async (page) => {
        const { rows, next } = await deps.sendRequest(ExportNotifications, { ...page, ...filter });
        const found = rows.map((row) => JSON.parse(row) as Notification);
        const pages = Array.from({ length: Math.ceil(found.length / opensAtATime) }, (_, at) =>
          withOpensOfAll(deps, page.projectId, found.slice(at * opensAtATime, (at + 1) * opensAtATime)),
        );
        return { rows: (await Promise.all(pages)).flat().map((row) => JSON.stringify(row)), next };
      });
    },
  }),
  defineRoute("exportDeliveries", "get /api/v1/exports/deliveries", {
    summary: "Export deliveries: the result of each notification for each device",
    description,
    access: project("export"),
    query: z.strictObject(deliveryExportQuery),
    responses: { 200: { description: "The deliveries", schema: ExportedDelivery, download } },
    handle: (deps, request) => {
      const { notification: notificationId, status } = request.query;
      const filter = { notificationId, status, ...timeRangeOf(request.query) };
      return exportReply(deps, request, ExportedDelivery, (page) =>
        deps.sendRequest(ExportDeliveries, { ...page, ...filter }),
      );
    },
  }),
  defineRoute("exportOpens", "get /api/v1/exports/opens", {
    summary: "Export opens: who opened which notification, and when",
    description: description.replace("sorted by `id`", "sorted by time, or by `id` with `notification`"),
    access: project("export"),
    query: z.strictObject(openExportQuery),
    responses: { 200: { description: "The opens", schema: ExportedOpen, download } },
    handle: (deps, request) => {
      const { notification: notificationId } = request.query;
      return exportReply(deps, request, ExportedOpen, (page) =>
        deps.sendRequest(ExportOpens, { ...page, notificationId }),
      );
    },
  }),
  defineRoute("exportReceipts", "get /api/v1/exports/receipts", {
    summary: "Export receipts and dismissals: which notification arrived where, and when",
    description: description.replace("sorted by `id`", "sorted by time, or by `id` with `notification`"),
    access: project("export"),
    query: z.strictObject(receiptExportQuery),
    responses: { 200: { description: "The receipts", schema: ExportedReceipt, download } },
    handle: (deps, request) => {
      const { notification: notificationId } = request.query;
      return exportReply(deps, request, ExportedReceipt, (page) =>
        deps.sendRequest(ExportReceipts, { ...page, notificationId }),
      );
    },
  }),
];
