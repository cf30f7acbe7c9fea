import {
  GetWebhookMessage,
  ListWebhookMessages,
  newWebhookMessageId,
  PingWebhook,
  pageOf,
  pageQuery,
  Recovered,
  RecoverWebhook,
  RecoverWebhookRequest,
  ResendWebhookMessage,
  WebhookMessage,
  WebhookMessageDetail,
  type WebhookMessageId,
  WebhookMessageStatus,
} from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { accepted, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { webhookMessageParam, webhookParam } from "./path-params.ts";
import { writing } from "./webhook-routes.ts";

const OneMessage = z.object({ data: WebhookMessage });
const ofWebhook = { tag: "Events", params: { id: webhookParam } } as const;
const ofMessage = { tag: "Events", params: { id: webhookParam, message: webhookMessageParam } } as const;

const listMessages = defineRoute({
  ...ofWebhook,
  method: "get",
  path: "/api/v1/webhooks/{id}/messages",
  operationId: "listWebhookMessages",
  summary: "List a webhook's messages, oldest first",
  description: "Kept for 30 days.",
  access: project("read"),
  query: z.strictObject({
    ...pageQuery,
    status: WebhookMessageStatus.optional().meta({ description: "Only messages with this status" }),
  }),
  responses: { 200: { description: "A page of messages", schema: pageOf(WebhookMessage) } },
  handle: async ({ sendRequest }, request) => {
    const { status, ...paging } = request.query;
    const question = { projectId: request.caller.projectId, webhookId: request.params.id, page: pageRequest(paging) };
    return pageReply(
      request,
      await sendRequest(ListWebhookMessages, { ...question, ...(status === undefined ? {} : { status }) }),
    );
  },
});

const getMessage = defineRoute({
  ...ofMessage,
  method: "get",
  path: "/api/v1/webhooks/{id}/messages/{message}",
  operationId: "getWebhookMessage",
  summary: "Read a message and its attempts",
  description: "Includes the posted body and the receiver's response to each of the last 20 attempts, oldest first.",
  access: project("read"),
  responses: { 200: { description: "The message", schema: z.object({ data: WebhookMessageDetail }) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params: { id: webhookId, message: messageId } }) =>
    ok({ data: await sendRequest(GetWebhookMessage, { projectId, webhookId, messageId }) }),
});

const resendMessage = defineRoute({
  ...ofMessage,
  method: "post",
  path: "/api/v1/webhooks/{id}/messages/{message}/resend",
  operationId: "resendWebhookMessage",
  summary: "Send a message again",
  description:
    "Sends it at once, whatever its status, and retries on the whole schedule if that fails. Needs the scopes `read` and `send`.",
  access: writing,
  responses: { 202: { description: "The message, waiting to be sent", schema: OneMessage } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: () => "", // resending is repeatable by itself
      perform: async () => {
        const question = { projectId, webhookId: params.id, messageId: params.message };
        return accepted({ data: await sendRequest(ResendWebhookMessage, question) });
      },
    }),
});

const pingWebhook = defineRoute({
  ...ofWebhook,
  method: "post",
  path: "/api/v1/webhooks/{id}/ping",
  operationId: "pingWebhook",
  summary: "Send a test message",
  description:
    "Sends an event of type `io.herald.webhook.ping.v1`, whichever events the webhook receives, with one attempt. Read the message to see the result. Needs the scopes `read` and `send`.",
  access: writing,
  responses: { 202: { description: "The message, waiting to be sent", schema: OneMessage } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: newWebhookMessageId,
      perform: async ({ id }) => {
        const question = { projectId, webhookId: params.id, messageId: id as WebhookMessageId };
        return accepted({ data: await sendRequest(PingWebhook, question) });
      },
    }),
});

const recoverWebhook = defineRoute({
  ...ofWebhook,
  method: "post",
  path: "/api/v1/webhooks/{id}/recover",
  operationId: "recoverWebhook",
  summary: "Resend messages that failed since a time",
  description:
    "Selects by the time of the event, oldest first, up to 10,000 messages. When `more` is true, repeat the request for the next ones. Needs the scopes `read` and `send`.",
  access: writing,
  body: RecoverWebhook,
  responses: {
    202: { description: "The number of messages that wait to be sent", schema: z.object({ data: Recovered }) },
  },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body, idempotent }) =>
    idempotent({
      newId: () => "", // messages that wait already are not selected again
      perform: async () => {
        const question = { projectId, webhookId: params.id, since: new Date(body.since).toISOString() };
        return accepted({ data: await sendRequest(RecoverWebhookRequest, question) });
      },
    }),
});

export const webhookMessageRoutes = [listMessages, getMessage, resendMessage, pingWebhook, recoverWebhook];
