import {
  CancelNotification,
  CountAudience,
  CountOpens,
  Delivery,
  DeliveryStatus,
  DryRun,
  GetNotification,
  ListDeliveries,
  ListNotifications,
  listQuery,
  Notification,
  NotificationCounts,
  type NotificationId,
  newNotificationId,
  notificationFilterQuery,
  OpensOfDevices,
  type ProjectId,
  pageOf,
  pageQuery,
  SendNotification,
  type SendV1,
} from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { accepted, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import type { Attempt } from "../idempotency/idempotency.ts";
import { acceptedView, acceptNotification, rulesFor, sendCommand } from "../sending/accept-notification.ts";
import { renderSamples } from "../sending/render-samples.ts";
import { sendOperation } from "../sending/send-operation.ts";
import { notificationParam } from "./path-params.ts";

const OneNotification = z.object({ data: Notification });

/** Longer than other requests: registry reads every device of the audience. */
const countTimeoutMs = 8_000;

/** Counts the audience and renders samples; changes nothing. */
const dryRun = async ({ sendRequest }: RouteDeps, command: SendV1): Promise<DryRun> => {
  const { projectId, content } = command;
  const request = { projectId, targets: content.targets };
  const { devices, unmatched } = await sendRequest(CountAudience, request, { timeoutMs: countTimeoutMs });
  const platforms = (["ios", "android", "web"] as const).filter((platform) => devices[platform] > 0);
  return {
    dry_run: true,
    devices: { total: devices.ios + devices.android + devices.web, ...devices },
    unmatched,
    rendered: renderSamples(command, platforms),
  };
};

const sendNotification = defineRoute({
  method: "post",
  path: "/api/v1/notifications",
  operationId: "sendNotification",
  tag: "Notifications",
  summary: "Send a notification",
  description:
    "A 202 means that the notification is stored on disk; read its progress by its id. Without `ttl` it expires after 28 days. With `dry_run` nothing is sent or stored: the 200 contains the number of devices and the payload of each platform. The rendered payload must fit every platform whose provider the project has: 4,096 bytes, 3,993 for Web Push.",
  access: project("send"),
  body: SendNotification,
  responses: {
    200: { description: "The result of `dry_run`", schema: z.object({ data: DryRun }) },
    202: { description: "The notification is accepted, or scheduled", schema: OneNotification },
  },
  errors: ["quota-exceeded"],
  handle: async (deps, { caller: { projectId }, body: { notification }, idempotent }) => {
    const { limits } = deps;
    const sending = ({ id, at }: Attempt) => ({ projectId, id: id as NotificationId, at, notification });
    const accept = (attempt: Attempt) => acceptNotification({ ...sending(attempt), ...rulesFor(deps, projectId) });
    if (notification.dry_run === true)
      return idempotent({
        newId: newNotificationId,
        check: accept,
        perform: async (attempt) => {
          const command = accept(attempt);
          await limits.countDryRun(projectId);
          return ok({ data: await dryRun(deps, command) });
        },
      });
    const reply = (command: SendV1) => accepted({ data: acceptedView(command) });
    return idempotent(
      sendOperation(deps, projectId, {
        validate: async (at) => ({
          commands: [accept({ id: newNotificationId(at), at })],
          reply: ([command]) => reply(command as SendV1),
        }),
        rebuildCommands: async (attempt) => [accept(attempt)],
        // Without the checks: a provider that was added since must not change a response that was given.
        rebuildResponse: (attempt) => reply(sendCommand(sending(attempt))),
      }),
    );
  },
});

type Opens = z.output<typeof CountOpens.answer>;

/** The opens of the notifications by id, from analytics. */
const opensOf = async (
  { sendRequest }: RouteDeps,
  projectId: ProjectId,
  ids: readonly NotificationId[],
): Promise<Opens> =>
  ids.length === 0 ? { counts: {} } : sendRequest(CountOpens, { projectId, notificationIds: [...ids] });

const withOpens = (notification: Notification, { counts, totals = {} }: Opens): Notification => {
  const { accepted } = notification.counts;
  const opened = counts[notification.id] ?? 0;
  // The ledger of a large notification may lag behind its opens, and a rate above 1 would be nonsense.
  const openRate = accepted === 0 ? null : Math.min(1, Math.round((opened / accepted) * 10_000) / 10_000);
  return {
    ...notification,
    counts: { ...notification.counts, opened },
    opens: { open_rate: openRate, ...totals[notification.id] },
  };
};

/** Adds opens to a page of notifications. */
export const withOpensOfAll = async (
  deps: RouteDeps,
  projectId: ProjectId,
  page: readonly Notification[],
): Promise<Notification[]> => {
  const opens = await opensOf(
    deps,
    projectId,
    page.map(({ id }) => id),
  );
  return page.map((notification) => withOpens(notification, opens));
};

const listNotifications = defineRoute({
  method: "get",
  path: "/api/v1/notifications",
  operationId: "listNotifications",
  tag: "Notifications",
  summary: "List notifications",
  description: "Oldest first, unless `sort` says otherwise. Filters combine: a notification must fit all of them.",
  access: project("read"),
  query: z.strictObject({ ...listQuery, ...notificationFilterQuery }),
  responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
  handle: async (deps, request) => {
    const { projectId } = request.caller;
    const { status, kind, label, ...query } = request.query;
    const filter = { projectId, status, kind, label };
    const page = await deps.sendRequest(ListNotifications, { ...filter, page: pageRequest(query) });
    return pageReply(request, { ...page, data: await withOpensOfAll(deps, projectId, page.data) });
  },
});

const getNotification = defineRoute({
  method: "get",
  path: "/api/v1/notifications/{id}",
  operationId: "getNotification",
  tag: "Notifications",
  summary: "Read a notification and its counts",
  access: project("read"),
  params: { id: notificationParam },
  responses: { 200: { description: "The notification", schema: OneNotification } },
  errors: ["notification-not-found", "notification-gone"],
  handle: async (deps, { caller: { projectId }, params: { id } }) => {
    const [notification, opens] = await Promise.all([
      deps.sendRequest(GetNotification, { projectId, notificationId: id }),
      opensOf(deps, projectId, [id]),
    ]);
    return ok({ data: withOpens(notification, opens) });
  },
});

/** Needs dispatch alone, so that a send can be stopped while analytics is unavailable: the response has no opens. */
const Cancelled = Notification.extend({ counts: NotificationCounts.omit({ opened: true }) });

const cancelNotification = defineRoute({
  method: "delete",
  path: "/api/v1/notifications/{id}",
  operationId: "cancelNotification",
  tag: "Notifications",
  summary: "Cancel the rest of a notification",
  description:
    "Herald starts no further push after this response. Up to 50 pushes of each batch in progress may already be on their way to the provider; they count as accepted or failed, all others as cancelled.",
  access: project("send"),
  params: { id: notificationParam },
  responses: { 200: { description: "The notification is cancelled", schema: z.object({ data: Cancelled }) } },
  errors: ["notification-not-found", "notification-gone", "notification-final"],
  handle: async ({ sendRequest }, { caller: { projectId }, params: { id } }) => {
    const { counts, ...notification } = await sendRequest(CancelNotification, { projectId, notificationId: id });
    const { opened: _, ...known } = counts;
    return ok({ data: { ...notification, counts: known } });
  },
});

const listDeliveries = defineRoute({
  method: "get",
  path: "/api/v1/notifications/{id}/deliveries",
  operationId: "listDeliveries",
  tag: "Notifications",
  summary: "List the deliveries of a notification, one per device",
  description: "Sorted by batch, and by device within a batch.",
  access: project("read"),
  params: { id: notificationParam },
  query: z.strictObject({
    ...pageQuery,
    status: DeliveryStatus.optional().meta({ description: "Only deliveries with this status" }),
  }),
  responses: { 200: { description: "A page of deliveries", schema: pageOf(Delivery) } },
  errors: ["notification-not-found", "notification-gone"],
  handle: async (deps, request) => {
    const { projectId } = request.caller;
    const notificationId = request.params.id;
    const { status, ...query } = request.query;
    const page = await deps.sendRequest(ListDeliveries, {
      projectId,
      notificationId,
      page: pageRequest(query),
      ...(status === undefined ? {} : { status }),
    });
    const deviceIds = page.data.map(({ device_id }) => device_id);
    const { openedAt } =
      deviceIds.length === 0
        ? { openedAt: {} as Record<string, string> }
        : await deps.sendRequest(OpensOfDevices, { projectId, notificationId, deviceIds });
    const data = page.data.map((delivery) => {
      const opened = openedAt[delivery.device_id];
      return opened === undefined ? delivery : { ...delivery, opened_at: opened };
    });
    return pageReply(request, { ...page, data });
  },
});

export const notificationRoutes = [
  sendNotification,
  listNotifications,
  getNotification,
  cancelNotification,
  listDeliveries,
];
