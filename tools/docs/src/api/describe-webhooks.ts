import { type EventContract, EventMessage, events } from "@herald/contracts";
import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";

const signatureHeaders = z.object({
  "webhook-id": z.string().meta({
    description: "The message's id; a repeated message has the same",
    examples: ["msg_06bq4ghm31tz5d2ns8y7k9w0ac"],
  }),
  "webhook-timestamp": z
    .string()
    .meta({ description: "The time of this attempt, in seconds since 1970", examples: ["1896080400"] }),
  "webhook-signature": z.string().meta({
    description:
      "`v1,` and an HMAC-SHA256 in base64; two of them, separated by a space, for a day after a secret was rotated",
    examples: ["v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="],
  }),
});

/** The operation that a webhook receiver implements for one event type. */
const webhookOf = ({ name, ceType }: EventContract): ZodOpenApiOperationObject => ({
  operationId: `receive${name.replace(/V\d+$/, "")}`,
  tags: ["Events"],
  summary: ceType,
  description:
    "Posted to webhooks whose `events` contain this type or are empty. Verify the signature before you read the body.",
  security: [],
  requestParams: { header: signatureHeaders },
  requestBody: {
    required: true,
    content: {
      "application/json": {
        schema: { $ref: `#/components/schemas/${name}Message` },
      },
    },
  },
  responses: {
    "2XX": { description: "Received. Respond within 20 seconds and process the event afterwards" },
    "410": { description: "The receiver no longer exists: twice in a row, Herald disables the webhook" },
    default: { description: "Herald retries later, with growing delays" },
  },
});

/** A webhook is deleted with its project, so it never receives that event. Events of the installation belong to no project. */
const webhookEvents = (Object.values(events) as unknown as EventContract[]).filter(
  ({ ceType }) => ceType !== events.ProjectDeletedV1.ceType && ceType !== events.AuditRecordedV1.ceType,
);

/** The operations that receivers of webhooks implement, by event type. */
export const describeWebhooks = (): Record<string, { readonly post: ZodOpenApiOperationObject }> =>
  Object.fromEntries(webhookEvents.map((contract) => [contract.ceType, { post: webhookOf(contract) }]));

/** The bodies of these operations. */
export const webhookMessages: readonly z.ZodType[] = webhookEvents.map(({ name, ceType, schema }) =>
  EventMessage.extend({ type: z.literal(ceType), data: schema }).meta({ id: `${name}Message` }),
);
