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
  Notification,
  NotificationCounts,
  type NotificationId,
  newNotificationId,
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

/** Longer than other questions take: every device of the audience is read. */
const countTimeoutMs = 8_000;

/** Who would get it and what: asks, and changes nothing. */
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
    "The 202 means that it is stored safely; what becomes of it is read from its id. Without `ttl` it is kept for 28 days. With `dry_run` nothing is sent or stored: the 200 says how many devices would get it, and what. The rendered payload must fit every platform whose provider the project has: 4,096 bytes, 3,993 for Web Push.",
  access: project("send"),
  body: SendNotification,
  responses: {
    200: { description: "What `dry_run` found", schema: z.object({ data: DryRun }) },
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
        // Without the checks: a provider that the project got since does not turn an answer that was given.
        rebuildResponse: (attempt) => reply(sendCommand(sending(attempt))),
      }),
    );
  },
});

type Opens = z.output<typeof CountOpens.answer>;

/** What analytics knows of the opens of the notifications, by id. */
const opensOf = async (
  { sendRequest }: RouteDeps,
  projectId: ProjectId,
  ids: readonly NotificationId[],
): Promise<Opens> =>
  ids.length === 0 ? { counts: {} } : sendRequest(CountOpens, { projectId, notificationIds: [...ids] });

const withOpens = (notification: Notification, { counts, totals = {} }: Opens): Notification => {
  const { accepted } = notification.counts;
  const opened = counts[notification.id] ?? 0;
  // The ledger may be a little behind the opens of a large notification; a rate above 1 would be nonsense.
  const openRate = accepted === 0 ? null : Math.min(1, Math.round((opened / accepted) * 10_000) / 10_000);
  return {
    ...notification,
    counts: { ...notification.counts, opened },
    opens: { open_rate: openRate, ...totals[notification.id] },
  };
};

/** A page of notifications with what analytics knows of their opens. */
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
  summary: "List notifications, oldest first",
  access: project("read"),
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
  handle: async (deps, request) => {
    const { projectId } = request.caller;
    const page = await deps.sendRequest(ListNotifications, { projectId, page: pageRequest(request.query) });
    return pageReply(request, { ...page, data: await withOpensOfAll(deps, projectId, page.data) });
  },
});

const getNotification = defineRoute({
  method: "get",
  path: "/api/v1/notifications/{id}",
  operationId: "getNotification",
  tag: "Notifications",
  summary: "Read a notification, with what became of it",
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

/** Stopping a send needs nobody but dispatch, so the answer leaves out what analytics would have to add. */
const Cancelled = Notification.extend({ counts: NotificationCounts.omit({ opened: true }) });

const cancelNotification = defineRoute({
  method: "delete",
  path: "/api/v1/notifications/{id}",
  operationId: "cancelNotification",
  tag: "Notifications",
  summary: "Cancel what is not sent yet",
  description:
    "After the answer no further push begins. Up to 50 of each batch that is being sent may be on their way to the provider already; they count as accepted or failed, all others as cancelled.",
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
  summary: "List what became of a notification on each device",
  access: project("read"),
  params: { id: notificationParam },
  query: z.strictObject({ ...pageQuery, status: DeliveryStatus.optional() }),
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
