import { OpenNotification } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { signedBody } from "../auth/caller.ts";
import { noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { notificationParam } from "./path-params.ts";

const faults = {
  malformed: "is not an open token",
  "unknown-key": "is not signed with a current key",
  forged: "does not belong to this project and notification",
  expired: "has expired: opens are taken for 30 days",
} as const;

const openNotification = defineRoute({
  method: "put",
  path: "/api/v1/notifications/{id}/open",
  operationId: "openNotification",
  tag: "Notifications",
  summary: "Report that a notification was opened",
  description:
    "Send `project_id` and `token` from the payload that the device received. An open counts once per device and notification.",
  access: signedBody,
  params: { id: notificationParam },
  body: OpenNotification,
  // A project's id, and a token of at most 512 characters.
  bodyLimitBytes: 2_048,
  responses: { 204: { description: "The open is recorded" } },
  errors: ["notification-not-found", "open-token-invalid"],
  handle: async ({ openTokens, recordOpen, now }, { params, body }) => {
    const projectId = body.project_id;
    const openedAt = now();
    const verified = openTokens.verify({ projectId, notificationId: params.id }, body.token, openedAt);
    if ("fault" in verified) throw new HeraldError("open-token-invalid", `token: ${faults[verified.fault]}`);
    await recordOpen(projectId, { notificationId: params.id, ...verified, openedAt: openedAt.toISOString() });
    return noContent();
  },
});

export const openRoutes = [openNotification];
