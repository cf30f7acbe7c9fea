import {
  batchSendLimits,
  ChangeNotification,
  Delivery,
  DryRun,
  deliveryRequests,
  isTemplated,
  Notification,
  NotificationCounts,
  type NotificationId,
  newNotificationId,
  notificationRequests,
  openRequests,
  PauseNotification,
  type ProjectId,
  pageOf,
  Rollout,
  recipientLimits,
  recipientRequests,
  SendNotification,
  SendNotifications,
  type SendV1,
  SentNotification,
  type UserId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { scheduleOf } from "@herald/rules";
import { z } from "zod";
import { authorOf, type CallerOf, project } from "../auth/caller.ts";
import { notificationFor } from "../auth/shown-to.ts";
import type { RequestDeps } from "../deps.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { accepted, ok, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import type { Attempt } from "../idempotency/idempotency.ts";
import { acceptedView, acceptNotification, renderSend, rulesFor, sendCommand } from "../sending/accept-notification.ts";
import { checkRollout } from "../sending/check-rollout.ts";
import { dryRun } from "../sending/dry-run.ts";
import { propose } from "../sending/propose.ts";
import { sendBatch } from "../sending/send-batch.ts";
import { sendOperation } from "../sending/send-operation.ts";
import { withReported } from "../views/reported.ts";

/** Two thousand recipients with fifty values each have more, and do not fit into the body. */
const sendMaxValues = 100_000;

/** An upload of a few thousand lines is finished by then. */
const uploadRetrySeconds = 10;

const isUpload = ({ recipients }: SendNotification["notification"]): boolean =>
  recipients !== undefined && "upload" in recipients;

const OneNotification = dataOf(Notification);

/** The response of a send whose template may have changed since: only the stored notification has its texts. */
const storedReply = async ({ sendRequest }: RequestDeps, projectId: ProjectId, notificationId: NotificationId) => {
  const stored = await sendRequest(notificationRequests.get, { projectId, notificationId });
  const { id: _, status: _status, counts: _counts, failures: _failures, ...rest } = stored;
  const {
    skips: _skips,
    unmatched: _unmatched,
    created_at: acceptedAt,
    completed_at: _end,
    opens: _opens,
    schedule: _schedule,
    paused: _paused,
    approval: proposal,
    rollout,
    ...others
  } = rest;
  const content = { ...others, rollout: rollout && Rollout.strip().parse(rollout) };
  const { sendAt } = scheduleOf(content, { at: new Date(acceptedAt), zone: "UTC" });
  return accepted(
    acceptedView({ notificationId, content, acceptedAt, ...(sendAt && { sendAt }), ...(proposal && { proposal }) }),
  );
};

/** Adds what devices reported to a notification. */
const withOpens = (
  notification: Notification,
  { counts, totals = {}, reports = {} }: z.output<typeof openRequests.count.answer>,
): Notification => {
  const { accepted } = notification.counts;
  const opened = counts[notification.id] ?? 0;
  // The ledger of a large notification may lag behind its opens, which would give a rate above 1.
  const openRate = accepted === 0 ? null : Math.min(1, Math.round((opened / accepted) * 10_000) / 10_000);
  return {
    ...notification,
    counts: { ...notification.counts, opened, ...reports[notification.id] },
    opens: { open_rate: openRate, ...totals[notification.id] },
  };
};

/** Adds opens to a page of notifications. */
export const withOpensOfAll = async (
  deps: RequestDeps,
  projectId: ProjectId,
  page: Notification[],
): Promise<Notification[]> => {
  if (page.length === 0) return page;
  const opens = await deps.sendRequest(openRequests.count, { projectId, notificationIds: page.map(({ id }) => id) });
  return page.map((notification) => withOpens(notification, opens));
};

/** A page of notifications, with their opens. */
export const listedNotifications = async (
  deps: RequestDeps,
  caller: CallerOf<"project">,
  query: z.output<typeof notificationRequests.list.query>,
  userId?: UserId,
) => {
  const { projectId } = caller;
  const { status, kind, label, push_type } = query;
  const asked = { projectId, userId, status, kind, label, push_type, page: pageRequest(query) };
  const page = await deps.sendRequest(notificationRequests.list, asked);
  const data = await withOpensOfAll(deps, projectId, page.data);
  return pageReply({ ...page, data: data.map(notificationFor(caller)) });
};

/** Needs only dispatch, so that it works while analytics is unavailable. Hence the response has no opens and receipts. */
export const WithoutOpens = Notification.extend({
  counts: NotificationCounts.omit({ opened: true, received: true, dismissed: true, buttons: true }),
});

export const withoutOpens = (
  { counts, ...notification }: Notification,
  { caller }: { readonly caller: CallerOf<"project" | "operator"> },
): z.input<typeof WithoutOpens> => {
  const { opened: _, received: _received, dismissed: _dismissed, ...known } = counts;
  const shown = caller.kind === "operator" ? notification : notificationFor(caller)(notification);
  return { ...shown, counts: known };
};

export const notificationRoutes = [
  defineRoute("sendNotification", "post /api/v1/notifications", {
    summary: "Send a notification",
    description:
      "With `template` it has the texts and settings of a published template; with `template`, `variables` or `recipients` its texts are Liquid, rendered before it is accepted. With `recipients` it goes to each of up to 2,000 users or devices with values of its own: dispatch renders the texts for each device. All recipients are accepted, or none. A 202 means that the notification is stored on disk; read its progress by its id. Without `ttl` it expires after 28 days. With `dry_run` nothing is sent or stored: the 200 contains the number of devices and the payload of each platform. The rendered payload must fit every platform whose provider the project has: 4,096 bytes, 3,993 for Web Push.",
    access: project("send"),
    body: SendNotification,
    bodyMaxValues: sendMaxValues,
    responses: {
      200: { description: "The result of `dry_run`", schema: dataOf(DryRun) },
      202: { description: "The notification is accepted, or scheduled", schema: OneNotification },
    },
    errors: ["quota-exceeded"],
    handle: async (deps, { caller, body: { notification }, idempotent }) => {
      const { limits, projects } = deps;
      const { projectId } = caller;
      const sending = async ({ id, at }: Attempt<NotificationId>) => {
        const rendered = await renderSend(deps, projectId, notification);
        return { projectId, id, at, ...rendered };
      };
      const accept = async (attempt: Attempt<NotificationId>) =>
        deps.sends.check(acceptNotification({ ...(await sending(attempt)), ...rulesFor(deps, projectId) }));
      if (isUpload(notification)) {
        if (notification.dry_run === true)
          throw new HeraldError(
            "validation-failed",
            "notification.dry_run: is not accepted with an upload; send it, and upload the file with `dry_run=true`",
          );
        const { uploads: max } = recipientLimits;
        const { uploads } = await deps.sendRequest(recipientRequests.countUploads, { projectId, limit: max });
        if (uploads >= max)
          throw new HeraldError(
            "quota-exceeded",
            `notification.recipients: ${max} uploads of the project wait for lines, and no more may; finish or cancel one`,
            { retryAfterSeconds: uploadRetrySeconds },
          );
      }
      if (notification.dry_run === true)
        return idempotent({
          newId: newNotificationId,
          check: accept,
          perform: async (attempt) => {
            const { command } = await accept(attempt);
            await limits.countDryRun(projectId);
            return ok(await dryRun(deps, command));
          },
        });
      const reply = (command: SendV1) => accepted(acceptedView(command));
      return idempotent(
        sendOperation(deps, projectId, {
          validate: async (at) => {
            const send = await accept({ id: newNotificationId(at), at });
            if (notification.rollout) await checkRollout(deps, send.command);
            const sent = send.small ? send : await propose(deps, caller, send);
            return {
              sends: [sent],
              reply: ([id = sent.command.notificationId]) => reply({ ...sent.command, notificationId: id }),
            };
          },
          rebuildSends: async (attempt) => {
            const send = await accept(attempt);
            return [send.small ? send : await propose(deps, caller, send)];
          },
          idsOf: ({ id }) => [id],
          // Without the checks: a provider added since the first response must not change it.
          rebuildResponse: async (attempt) =>
            isTemplated(notification) || (await projects.settings(projectId)).approval
              ? storedReply(deps, projectId, attempt.id)
              : reply(sendCommand(await sending(attempt))),
        }),
      );
    },
  }),
  defineRoute("listNotifications", "get /api/v1/notifications", {
    summary: "List notifications",
    description:
      "Oldest first, unless `sort` says otherwise. Filters combine: a notification must fit all of them. A new notification appears here as soon as dispatch has stored it, usually some milliseconds after its 202; reading it by its id works at once.",
    access: project("read"),
    query: notificationRequests.list.query,
    responses: { 200: { description: "A page of notifications", schema: pageOf(Notification) } },
    handle: (deps, { caller, query }) => listedNotifications(deps, caller, query),
  }),
  defineRoute("getNotification", "get /api/v1/notifications/{id}", {
    summary: "Read a notification and its counts",
    access: project("read"),
    responses: { 200: { description: "The notification", schema: OneNotification } },
    errors: ["notification-gone"],
    handle: async (deps, { caller, params: { id } }) => {
      const { projectId } = caller;
      const [notification, opens] = await Promise.all([
        deps.sendRequest(notificationRequests.get, { projectId, notificationId: id }),
        deps.sendRequest(openRequests.count, { projectId, notificationIds: [id] }),
      ]);
      return ok(notificationFor(caller)(withOpens(notification, opens)));
    },
  }),
  forwardRoute("changeNotification", "patch /api/v1/notifications/{id}", {
    summary: "Change when a notification is sent, or how fast",
    description:
      "When: before it begins; in waves: before the first one. The speed of a rollout may be lowered until it has ended. `null` removes `time_zone`, `past` or `ttl`. Absent fields stay as they are. To change its texts, cancel it and send another.",
    access: project("send"),
    body: ChangeNotification,
    forward: notificationRequests.change,
    add: ({ caller, body }, { projects }) => ({
      change: body.notification,
      zone: projects.defaultTimeZone(caller.projectId),
    }),
    schema: WithoutOpens,
    show: withoutOpens,
    response: "The changed notification",
    errors: ["notification-gone", "notification-final", "notification-started", "notification-proposed"],
  }),
  forwardRoute("pauseNotification", "post /api/v1/notifications/{id}/pause", {
    summary: "Pause a notification",
    description:
      "Herald starts no further push after this response. Up to 50 pushes of each batch in progress may already be on their way to the provider. The others wait until it resumes; its time to live runs on, so they may expire. Changes nothing if it is paused already.",
    access: project("send"),
    body: PauseNotification,
    forward: notificationRequests.pause,
    add: ({ caller, body: { reason } }) => ({ by: authorOf(caller), reason }),
    schema: WithoutOpens,
    show: withoutOpens,
    response: "The notification is paused",
    errors: ["notification-gone", "notification-final"],
  }),
  forwardRoute("resumeNotification", "post /api/v1/notifications/{id}/resume", {
    summary: "Resume a notification",
    description: "Changes nothing if it is not paused. While its project is paused, it still waits.",
    access: project("send"),
    forward: notificationRequests.resume,
    add: ({ caller }) => ({ by: authorOf(caller) }),
    schema: WithoutOpens,
    show: withoutOpens,
    response: "The notification goes on",
    errors: ["notification-gone", "notification-final"],
  }),
  forwardRoute("cancelNotification", "delete /api/v1/notifications/{id}", {
    summary: "Cancel a notification",
    description:
      "Herald starts no further push after this response. Up to 50 pushes of each batch in progress may already be on their way to the provider; they count as accepted or failed, all others as cancelled.",
    access: project("send"),
    forward: notificationRequests.cancel,
    schema: WithoutOpens,
    show: withoutOpens,
    response: "The notification is cancelled",
    errors: ["notification-gone", "notification-final"],
  }),
  defineRoute("listDeliveries", "get /api/v1/notifications/{id}/deliveries", {
    summary: "List the deliveries of a notification, one per device",
    description: "Sorted by batch, and by device within a batch.",
    access: project("read"),
    query: deliveryRequests.list.query,
    responses: { 200: { description: "A page of deliveries", schema: pageOf(Delivery) } },
    errors: ["notification-gone"],
    handle: async ({ sendRequest }, { caller: { projectId }, params, query }) => {
      const one = { projectId, notificationId: params.id };
      const page = await sendRequest(deliveryRequests.list, { ...one, status: query.status, page: pageRequest(query) });
      const deviceIds = page.data.map(({ device_id }) => device_id);
      const data = await withReported(
        page.data,
        ({ device_id }) => device_id,
        () => sendRequest(openRequests.ofDevices, { ...one, deviceIds }),
      );
      return pageReply({ ...page, data });
    },
  }),
];

export const sendNotifications = defineRoute("sendNotifications", "post /api/v1/notifications/batch", {
  summary: "Send up to 500 notifications, each with its own content and targets",
  description:
    "Each notification is accepted or refused by itself: a 202 contains an `id` or `errors` for each, in the order of the request; a 422 means that none was accepted. Limits and quotas count each notification. If the rate limit has no room for all of them, the whole request is refused. A notification beyond a quota gets its own error; if all are beyond it, the response is a 429. An `Idempotency-Key` covers the whole request: a repeat returns the same ids, and refused notifications stay refused. The body may have 4 MiB. `dry_run` is not accepted here.",
  access: project("send"),
  body: SendNotifications,
  bodyLimitBytes: batchSendLimits.bodyBytes,
  responses: {
    202: { description: "At least one is accepted", schema: dataOf(z.array(SentNotification)) },
  },
  errors: ["quota-exceeded"],
  handle: async (deps, { caller, body: { notifications }, idempotent }) => {
    // The HTTP request already counted as one.
    const fields = await deps.limits.countBatch(caller, notifications.length - 1);
    const { headers, ...reply } = await idempotent(
      sendOperation(deps, caller.projectId, sendBatch(deps, caller, notifications)),
    );
    return { ...reply, headers: { ...fields, ...headers } };
  },
});
