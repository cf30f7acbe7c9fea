import { DecideNotification, notificationRequests } from "@herald/contracts";
import type { z } from "zod";
import { authorOf, type CallerOf, projectApprover } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { WithoutOpens, withoutOpens } from "./notification-routes.ts";

type Decision = { readonly caller: CallerOf<"operator">; readonly body: z.output<typeof DecideNotification> };

const decision = {
  access: projectApprover,
  body: DecideNotification,
  add: ({ caller, body: { reason } }: Decision) => ({ by: authorOf(caller), reason }),
  schema: WithoutOpens,
  show: withoutOpens,
} as const;

export const approvalRoutes = [
  forwardRoute("approveNotification", "post /admin/v1/projects/{id}/notifications/{notification}/approve", {
    ...decision,
    summary: "Approve a proposed notification",
    description:
      "For admins of the installation, and operators with `approve` in their grant: another than its sender, and than the one who created its sender's token. It is sent now, or at its time; its time to live begins then. Its audience is estimated again: if that is more than a fifth above what the proposal says, the answer is a 409, the proposal says the new number, and a second approval is for that. An upload can be approved once it is complete. Approving twice is no error.",
    forward: notificationRequests.approve,
    response: "The notification is sent",
    errors: [
      "notification-gone",
      "notification-final",
      "notification-started",
      "audience-grew",
      "recipients-incomplete",
    ],
  }),
  forwardRoute("rejectNotification", "post /admin/v1/projects/{id}/notifications/{notification}/reject", {
    ...decision,
    summary: "Reject a proposed notification",
    description: "It is cancelled. For everybody who may approve sends of the project. Rejecting twice is no error.",
    forward: notificationRequests.reject,
    response: "The notification is cancelled",
    errors: ["notification-gone", "notification-final", "notification-started"],
  }),
];
