import { EventMessage, EventsQuery } from "@herald/contracts";
import { project } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";

const followEvents = defineRoute({
  method: "get",
  path: "/api/v1/events",
  operationId: "followEvents",
  tag: "Events",
  summary: "Stream the project's events",
  description:
    "Server-sent events: each `data` is an event, each `id` a position. To resume, send the last `id` as `Last-Event-ID` within 30 days. An event may be sent twice; its `id` inside `data` stays the same. Comment lines are heartbeats. Clients that stop reading are disconnected.",
  access: project("read"),
  query: EventsQuery,
  responses: {
    200: { description: "An endless stream of events", schema: EventMessage, stream: true },
  },
  errors: ["position-gone"],
  handle: async ({ eventStreams }, { caller: { projectId }, query: { types, since }, lastEventId, recheck }) => {
    const wanted = types === undefined ? undefined : new Set(types.split(","));
    return ok(await eventStreams.open({ projectId, types: wanted, since, lastEventId, recheck }));
  },
});

export const eventRoutes = [followEvents];
