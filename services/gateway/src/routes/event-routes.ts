import {
  EventMessage,
  EventsQuery,
  type NotificationId,
  OpenNotification,
  type ReceiptKind,
  ReportNotification,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";
import { project, shareOwner, signedBody } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";

export const followEvents = defineRoute("followEvents", "get /api/v1/events", {
  summary: "Stream the project's events",
  description:
    "Server-sent events: each `data` is an event, each `id` an opaque position. To resume, send the last `id` as `Last-Event-ID` within 30 days. An event may be sent twice; its `id` inside `data` stays the same. Comment lines are heartbeats. Clients that stop reading are disconnected.",
  access: project("read"),
  query: EventsQuery,
  responses: {
    200: { description: "An endless stream of events", schema: EventMessage, stream: true },
  },
  errors: ["position-gone"],
  handle: async ({ eventStreams }, { caller, query: { types, since }, message, recheck }) => {
    const wanted = types === undefined ? undefined : new Set(types.split(","));
    const lastEventId = message.headers["last-event-id"] as string | undefined;
    const { projectId } = caller;
    const owner = shareOwner(caller);
    const body = await eventStreams.open({ projectId, owner, types: wanted, since, lastEventId, recheck });
    return { status: 200 as const, body };
  },
});

const faults = {
  malformed: "is not an open token",
  "unknown-key": "is not signed with a current key",
  forged: "does not belong to this project and notification",
  expired: "has expired: reports are taken for 30 days",
} as const;

/** What the token of a report proves, and when it happened: not before the push was sent. */
const verifyReport = (
  { openTokens, now }: Pick<RouteDeps, "now" | "openTokens">,
  notificationId: NotificationId,
  { project_id: projectId, token, ago = 0 }: z.output<typeof ReportNotification>,
) => {
  const at = now();
  const verified = openTokens.verify({ projectId, notificationId }, token, at);
  if ("fault" in verified) throw new HeraldError("open-token-invalid", `token: ${faults[verified.fault]}`);
  const { issuedAt, ...device } = verified;
  const happened = new Date(Math.max(issuedAt.getTime(), at.getTime() - ago * 1_000));
  // A clock that is behind the one that signed must not put a report into the future.
  return { ...device, notificationId, at: (happened < at ? happened : at).toISOString() };
};

const reportRoute = {
  access: signedBody,
  // Room for a project id, a token of at most 512 characters and a button.
  bodyLimitBytes: 2_048,
  errors: ["open-token-invalid"],
} as const;

const openNotification = defineRoute("openNotification", "put /api/v1/notifications/{id}/open", {
  ...reportRoute,
  summary: "Report that a notification was opened",
  description:
    "Send `project_id` and `token` from the payload that the device received. An open counts once per device and notification: the first one, with its `button`. A `503` has a `Retry-After`: report again then, with `ago`.",
  body: OpenNotification,
  responses: { 204: { description: "The open is recorded" } },
  handle: async (deps, { params, body: { button, ...body } }) => {
    const { at: openedAt, asked: _, ...report } = verifyReport(deps, params.id, body);
    await deps.recordOpen(body.project_id, { ...report, openedAt, ...(button !== undefined && { button }) });
    return noContent();
  },
});

const receiptRoute = (kind: ReceiptKind, operation: "notificationReceived" | "notificationDismissed", text: string) =>
  defineRoute(operation, `put /api/v1/notifications/{id}/${kind}`, {
    ...reportRoute,
    summary: `Report that a notification was ${kind}`,
    description: `${text} Send \`project_id\` and \`token\` from the payload, at a random time within its \`receipt\` seconds. Counts once per device and notification, and only if the push asked for it: one without \`receipt\` gets the same answer.`,
    body: ReportNotification,
    lowPriority: true,
    responses: { 204: { description: "The report is recorded, or was not asked for" } },
    handle: async (deps, { params, body }) => {
      const { asked, ...report } = verifyReport(deps, params.id, body);
      if (asked) await deps.recordReceipt(body.project_id, { ...report, kind });
      return noContent();
    },
  });

export const reportRoutes = [
  openNotification,
  receiptRoute("received", "notificationReceived", "The app ran with this push; not that a person saw it."),
  receiptRoute("dismissed", "notificationDismissed", "The user dismissed it; iOS tells only of explicit dismissals."),
];
