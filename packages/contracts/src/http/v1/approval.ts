import { z } from "zod";
import { OperatorId } from "../../ids.ts";
import { named, namedBody } from "../../named.ts";
import { ReasonText } from "./pause.ts";
import { Author } from "./templates.ts";

/** How long a proposed notification waits for a decision. */
export const maxProposedMs = 72 * 3_600_000;

const devices = z.number().int().min(1_000).max(100_000_000);

/** Which sends of a project wait for a second person. */
export const ApprovalRule = z
  .strictObject({
    devices: devices.meta({
      description: "Sends to more devices are proposed, and wait for approval",
      examples: [10_000],
    }),
  })
  .meta({ id: "ApprovalRule", examples: [{ devices: 10_000 }] });
export type ApprovalRule = z.infer<typeof ApprovalRule>;

const count = z.number().int().min(0);

const proposal = {
  limit: devices.meta({ description: "Sends to more devices need approval" }),
  devices: count.optional().meta({
    description:
      "The devices that it would reach, estimated; of an upload its recipients, once it is complete. Absent: not known, registry did not answer",
    examples: [48_200],
  }),
  sender: Author,
};

/** What the gateway found of a send that needs approval. `owner`: the operator who created the sender's token. */
export const Proposal = z.object({ ...proposal, owner: z.union([OperatorId, z.literal("root")]).optional() });
export type Proposal = z.infer<typeof Proposal>;

/** Whether a second person agreed to a notification. */
export const Approval = named("Approval", {
  status: z.enum(["proposed", "approved", "rejected", "expired", "cancelled"]),
  ...proposal,
  expires_at: z.iso.datetime().meta({ description: "When it is cancelled unless it was approved" }),
  by: Author.optional().meta({ description: "Who approved or rejected it" }),
  at: z.iso.datetime().optional(),
  reason: z.string().optional(),
});
export type Approval = z.infer<typeof Approval>;

/** Body of `POST /admin/v1/projects/{id}/notifications/{notification}/approve` and `…/reject`. */
export const DecideNotification = namedBody("DecideNotification", { reason: ReasonText.optional() });
