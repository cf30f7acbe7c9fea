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
    "Each notification is accepted or refused by itself: a 202 contains an `id` or `errors` for each, in the order of the request; a 422 means that none was accepted. Limits and quotas count each notification. If the rate limit has no room for all of them, the whole request is refused. A notification beyond a quota gets its own error; if all are beyond it, the response is a 429. An `Idempotency-Key` covers the whole request: a repeat returns the same ids, and refused notifications stay refused. The body may have 4 MiB. `dry_run` is not accepted here.",
  access: project("send"),
  body: SendNotifications,
  bodyLimitBytes: batchSendLimits.bodyBytes,
  responses: {
    202: { description: "At least one is accepted", schema: z.object({ data: z.array(SentNotification) }) },
  },
  errors: ["quota-exceeded"],
  handle: async (deps, { caller, body: { notifications }, idempotent }) => {
    // The request itself counts as one.
    const fields = await deps.limits.countBatch(caller, notifications.length - 1);
    const { headers, ...reply } = await idempotent(
      sendOperation(deps, caller.projectId, sendBatch(deps, caller.projectId, notifications)),
    );
    return { ...reply, headers: { ...fields, ...headers } };
  },
});

export const batchRoutes = [sendNotifications];
