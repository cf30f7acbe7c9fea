import { batchSendLimits, SendNotifications, SentNotification } from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { defineRoute } from "../http/route.ts";
import { sendBatch } from "../sending/send-batch.ts";
import { sendOperation } from "../sending/send-operation.ts";

const sendNotifications = defineRoute({
  method: "post",
  path: "/api/v1/notifications/batch",
  operationId: "sendNotifications",
  tag: "Notifications",
  summary: "Send up to 500 notifications, each with its own content and targets",
  description:
    "Each is accepted or refused by itself: the 202 has an `id` or `errors` for each, in the order of the request, and the 422 says that none is accepted. Limits and quotas count each notification. Where the rate limit has no room for all of them the whole request is refused; a notification beyond a quota gets an error of its own, and a 429 says that all are beyond it. One `Idempotency-Key` is for the whole request: a repeat answers the same ids, and what was refused stays refused. The body may have 4 MiB. `dry_run` is not accepted here.",
  access: project("send"),
  body: SendNotifications,
  bodyLimitBytes: batchSendLimits.bodyBytes,
  responses: {
    202: { description: "At least one is accepted", schema: z.object({ data: z.array(SentNotification) }) },
  },
  errors: ["quota-exceeded"],
  handle: async (deps, { caller, body: { notifications }, idempotent }) => {
    // One is counted as the request itself.
    const fields = await deps.limits.countBatch(caller, notifications.length - 1);
    const { headers, ...reply } = await idempotent(
      sendOperation(deps, caller.projectId, sendBatch(deps, caller.projectId, notifications)),
    );
    return { ...reply, headers: { ...fields, ...headers } };
  },
});

export const batchRoutes = [sendNotifications];
