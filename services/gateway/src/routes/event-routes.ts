import { EventMessage, EventsQuery, OpenNotification } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { project, shareOwner, signedBody } from "../auth/caller.ts";
import { noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { notificationParam } from "./path-params.ts";

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
  expired: "has expired: opens are taken for 30 days",
} as const;

export const openNotification = defineRoute("openNotification", "put /api/v1/notifications/{id}/open", {
  summary: "Report that a notification was opened",
  description:
    "Send `project_id` and `token` from the payload that the device received. An open counts once per device and notification.",
  access: signedBody,
  params: { id: notificationParam },
  body: OpenNotification,
  // Room for a project id, and a token of at most 512 characters.
  bodyLimitBytes: 2_048,
  responses: { 204: { description: "The open is recorded" } },
  errors: ["open-token-invalid"],
  handle: async ({ openTokens, recordOpen, now }, { params, body }) => {
    const projectId = body.project_id;
    const openedAt = now();
    const verified = openTokens.verify({ projectId, notificationId: params.id }, body.token, openedAt);
    if ("fault" in verified) throw new HeraldError("open-token-invalid", `token: ${faults[verified.fault]}`);
    await recordOpen(projectId, { notificationId: params.id, ...verified, openedAt: openedAt.toISOString() });
    return noContent();
  },
});
