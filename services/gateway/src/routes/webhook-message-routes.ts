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
  summary: "List what a webhook got of each event, oldest first",
  description: "Kept for 30 days.",
  access: project("read"),
  query: z.strictObject({ ...pageQuery, status: WebhookMessageStatus.optional() }),
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
  description: "With what is posted, and what the receiver answered to each attempt: the last 20, oldest first.",
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
    "At once, whatever became of it, and on the whole schedule again where that fails. Needs the scopes `read` and `send`.",
  access: writing,
  responses: { 202: { description: "The message, waiting to be sent", schema: OneMessage } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: () => "", // sending again is repeatable by itself
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
    "Of type `io.herald.webhook.ping.v1`, whatever events the webhook gets; it is tried once. Read the message to see what came of it. Needs the scopes `read` and `send`.",
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
  summary: "Send again what failed since a time",
  description:
    "By the time of the event, oldest first, up to 10,000 messages: `more` says that the same request again takes the next. Needs the scopes `read` and `send`.",
  access: writing,
  body: RecoverWebhook,
  responses: { 202: { description: "How many messages wait to be sent", schema: z.object({ data: Recovered }) } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body, idempotent }) =>
    idempotent({
      newId: () => "", // what waits already is not taken twice
      perform: async () => {
        const question = { projectId, webhookId: params.id, since: new Date(body.since).toISOString() };
        return accepted({ data: await sendRequest(RecoverWebhookRequest, question) });
      },
    }),
});

export const webhookMessageRoutes = [listMessages, getMessage, resendMessage, pingWebhook, recoverWebhook];
