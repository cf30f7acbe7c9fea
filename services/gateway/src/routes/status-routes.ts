import { SystemStatus } from "@herald/contracts";
import { z } from "zod";
import { viewer } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";

const getStatus = defineRoute({
  method: "get",
  path: "/admin/v1/status",
  operationId: "getStatus",
  tag: "Administration",
  summary: "Read the state of the system",
  description:
    "Services with their replicas, versions and readiness; streams, durables, providers that need a person, and dead letters. Each process reports every five seconds; one that stops reporting without a stop is listed as `not_answering` for ten minutes. Answered from memory, so it is fast whatever is unavailable.",
  access: viewer,
  responses: { 200: { description: "The state of the system", schema: z.object({ data: SystemStatus }) } },
  handle: async ({ status }) => ok({ data: status.read() }),
});

export const statusRoutes = [getStatus];
