import { EventMessage, EventsQuery } from "@herald/contracts";
import { project } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";

const followEvents = defineRoute({
  method: "get",
  path: "/api/v1/events",
  operationId: "followEvents",
  tag: "Events",
  summary: "Follow the project's events as they happen",
  description:
    "Server-sent events: each `data` is an event, each `id` a position. Send the last one as `Last-Event-ID` to go on where you stopped, within 30 days; an event may come again, with the same `id` inside. Comments are signs of life. One who does not read is cut off.",
  access: project("read"),
  query: EventsQuery,
  responses: {
    200: { description: "One event after the other, without an end", schema: EventMessage, stream: true },
  },
  errors: ["position-gone"],
  handle: async ({ eventStreams }, { caller: { projectId }, query: { types, since }, lastEventId, recheck }) => {
    const wanted = types === undefined ? undefined : new Set(types.split(","));
    return ok(await eventStreams.open({ projectId, types: wanted, since, lastEventId, recheck }));
  },
});

export const eventRoutes = [followEvents];
