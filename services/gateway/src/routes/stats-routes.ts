import { GetStats, Stats, StatsQuery, toStatsRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";

const getStats = defineRoute({
  method: "get",
  path: "/api/v1/stats",
  operationId: "getStats",
  tag: "Statistics",
  summary: "Read numbers of sent, failed and opened notifications over time",
  description:
    "At most 10 s behind. The range is extended to whole intervals of the time zone; a day has 23 or 25 hours when the clocks change.",
  access: project("read"),
  query: StatsQuery,
  responses: {
    200: { description: "A series of intervals without gaps, and totals", schema: z.object({ data: Stats }) },
  },
  handle: async ({ sendRequest, now }, { caller: { projectId }, query }) => {
    const parsed = toStatsRequest(query, now());
    if ("problems" in parsed) throw new HeraldError("validation-failed", parsed.problems);
    return ok({ data: await sendRequest(GetStats, { projectId, request: parsed.request }) });
  },
});

export const statsRoutes = [getStats];
