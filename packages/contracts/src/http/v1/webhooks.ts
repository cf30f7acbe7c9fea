import { z } from "zod";
import { ProjectDeletedV1 } from "../../events.ts";
import { WebhookId, WebhookMessageId } from "../../ids.ts";
import { changedFields, named, namedBody } from "../../named.ts";
import { EventMessage, EventType } from "./events.ts";
import { Instant, pageQuery } from "./pagination.ts";

/** A project's webhooks are deleted with it, so they never receive `project.deleted`. */
const WebhookEvents = z
  .array(
    EventType.refine((type) => type !== ProjectDeletedV1.ceType, "cannot be received: a webhook ends with its project"),
  )
  .min(1, "at least one type is required; leave it out for all")
  .max(50, "must be at most 50 types")
  .nullable();

const WebhookUrl = z
  .string()
  .max(2_048, "must be at most 2048 characters")
  .refine((text) => URL.canParse(text), "must be an absolute URL, such as https://example.com/herald")
  .meta({ description: "https on port 443 with a public host name", examples: ["https://example.com/herald"] });

const Description = z.string().max(200, "must be at most 200 characters");

const settings = {
  url: WebhookUrl,
  events: WebhookEvents.optional().meta({ description: "Event types that it gets; absent or null: all" }),
  description: Description.optional(),
};

/** Body of `POST /webhooks`. */
export const CreateWebhook = namedBody("CreateWebhook", { webhook: z.strictObject(settings) });

/** Body of `PATCH /webhooks/{id}`. */
export const ChangeWebhook = namedBody("ChangeWebhook", {
  webhook: changedFields({ ...settings, url: WebhookUrl.optional(), enabled: z.boolean().optional() }),
});

/** Why a webhook is disabled: by a request, because it answered 410 twice in a row, or because it failed for five days. */
export const DisabledReason = z.enum(["requested", "gone", "failing"]).meta({ id: "DisabledReason" });
export type DisabledReason = z.infer<typeof DisabledReason>;

/** A webhook in responses. Its secret is shown only once, beside it, in the response that creates it. */
export const Webhook = named("Webhook", {
  id: WebhookId,
  url: z.string(),
  events: z.array(z.string()).nullable().meta({ description: "Event types that it gets; null: all" }),
  description: z.string().optional(),
  enabled: z.boolean(),
  disabled_reason: DisabledReason.optional(),
  disabled_at: z.iso.datetime().optional(),
  failing_since: z.iso.datetime().optional().meta({ description: "Since then no attempt has succeeded" }),
  previous_secret_until: z.iso
    .datetime()
    .optional()
    .meta({ description: "Until then messages are also signed with the previous secret" }),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});
export type Webhook = z.infer<typeof Webhook>;

export const WebhookMessageStatus = z.enum(["waiting", "delivered", "failed"]).meta({ id: "WebhookMessageStatus" });
export type WebhookMessageStatus = z.infer<typeof WebhookMessageStatus>;

/** The query of `GET /webhooks/{id}/messages`. */
export const WebhookMessageListQuery = z.strictObject({
  ...pageQuery,
  status: WebhookMessageStatus.optional().meta({ description: "Only messages with this status" }),
});

const messageFields = {
  id: WebhookMessageId,
  event_id: z.string().meta({ description: "`ce-id` of the event" }),
  type: z.string(),
  timestamp: z.iso.datetime().meta({ description: "When the event happened" }),
  status: WebhookMessageStatus,
  attempt_count: z.number().int().min(0),
  last_error: z.string().optional().meta({ description: "Why the last attempt failed" }),
  next_attempt_at: z.iso.datetime().optional(),
};

/** One event for one webhook. */
export const WebhookMessage = named("WebhookMessage", messageFields);
export type WebhookMessage = z.infer<typeof WebhookMessage>;

/** One HTTP request to the webhook's URL. */
export const WebhookAttempt = named("WebhookAttempt", {
  at: z.iso.datetime(),
  duration_ms: z.number().int().min(0),
  status: z.number().int().optional().meta({ description: "HTTP status; absent where no answer came" }),
  error: z.string().optional().meta({ description: "Why it failed; absent: it succeeded" }),
  response: z.string().optional().meta({ description: "The beginning of the answer's body" }),
});

/** A message with its body and its attempts, oldest first. */
export const WebhookMessageDetail = named("WebhookMessageDetail", {
  ...messageFields,
  payload: EventMessage,
  attempts: z.array(WebhookAttempt),
});
export type WebhookMessageDetail = z.infer<typeof WebhookMessageDetail>;

/** Body of `POST /webhooks/{id}/recover`. */
export const RecoverWebhook = namedBody("RecoverWebhook", { since: Instant });

/** The number of failed messages that will be sent again; `more`: repeat the request for the next ones. */
export const Recovered = named("Recovered", { messages: z.number().int().min(0), more: z.boolean() });
