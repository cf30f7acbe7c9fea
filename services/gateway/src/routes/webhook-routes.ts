import {
  ChangeWebhook,
  ChangeWebhookRequest,
  CreateWebhook,
  CreateWebhookRequest,
  DeleteWebhook,
  GetWebhook,
  GetWebhookMessage,
  ListWebhookMessages,
  ListWebhooks,
  listQuery,
  newWebhookId,
  newWebhookMessageId,
  PingWebhook,
  pageOf,
  pageQuery,
  Recovered,
  RecoverWebhook,
  RecoverWebhookRequest,
  ResendWebhookMessage,
  RotateWebhookSecret,
  Webhook,
  WebhookMessage,
  WebhookMessageDetail,
  WebhookMessageStatus,
} from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { messageFor, webhookFor } from "../auth/shown-to.ts";
import { accepted, created, noContent, ok, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { webhookMessageParam, webhookParam } from "./path-params.ts";

const OneWebhook = dataOf(Webhook);
const WithSecret = OneWebhook.extend({
  secret: shownOnce("`whsec_…`, the secret that signs messages; absent when a response is replayed"),
});

/** `read` because a webhook receives the data that `read` allows; `send` because a token that only reads must not stop a webhook. */
export const writing = project("read", "send");
const params = { id: webhookParam };

const createWebhook = defineRoute("createWebhook", "post /api/v1/webhooks", {
  summary: "Create a webhook",
  description:
    "Herald posts the project's events to the URL from now on, signed as Standard Webhooks defines. Only this response contains the secret.",
  access: writing,
  body: CreateWebhook,
  responses: { 201: { description: "The webhook and its secret", schema: WithSecret } },
  errors: ["webhook-limit"],
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) =>
    idempotent({
      newId: newWebhookId,
      perform: async ({ id }) => {
        const question = { projectId, webhookId: id, settings: body.webhook };
        const { webhook, secret } = await sendRequest(CreateWebhookRequest, question);
        return created(webhook, { secret });
      },
    }),
});

const listWebhooks = defineRoute("listWebhooks", "get /api/v1/webhooks", {
  summary: "List webhooks",
  description:
    "Oldest first, unless `sort` says otherwise. A token that may not change webhooks gets `url` without path and query, because those of chat systems are credentials.",
  access: project("read"),
  query: z.strictObject(listQuery),
  responses: { 200: { description: "A page of webhooks, without their secrets", schema: pageOf(Webhook) } },
  handle: async ({ sendRequest }, { caller, query }) => {
    const page = await sendRequest(ListWebhooks, { projectId: caller.projectId, page: pageRequest(query) });
    return pageReply({ ...page, data: page.data.map(webhookFor(caller)) });
  },
});

const getWebhook = defineRoute("getWebhook", "get /api/v1/webhooks/{id}", {
  params,
  summary: "Read a webhook",
  description: "Without the scope `send` it has `url` without path and query.",
  access: project("read"),
  responses: { 200: { description: "The webhook", schema: OneWebhook } },
  handle: async ({ sendRequest }, { caller, params }) =>
    ok(webhookFor(caller)(await sendRequest(GetWebhook, { projectId: caller.projectId, webhookId: params.id }))),
});

const changeWebhook = defineRoute("changeWebhook", "patch /api/v1/webhooks/{id}", {
  params,
  summary: "Change, disable or enable a webhook",
  description: "Events that happen while it is disabled are stored as failed messages; `recover` sends them.",
  access: writing,
  body: ChangeWebhook,
  responses: { 200: { description: "The changed webhook", schema: OneWebhook } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) => {
    const question = { projectId, webhookId: params.id, change: body.webhook };
    return ok(await sendRequest(ChangeWebhookRequest, question));
  },
});

const deleteWebhook = defineRoute("deleteWebhook", "delete /api/v1/webhooks/{id}", {
  params,
  summary: "Delete a webhook and its messages",
  access: writing,
  responses: { 204: { description: "The webhook is deleted" } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    sendRequest(DeleteWebhook, { projectId, webhookId: params.id }).then(noContent),
});

const rotateSecret = defineRoute("rotateWebhookSecret", "post /api/v1/webhooks/{id}/secret", {
  params,
  summary: "Rotate a webhook's secret",
  description:
    "For a day messages are signed with the previous secret too, so that the receiver can change without a gap.",
  access: writing,
  responses: { 201: { description: "The webhook and its new secret", schema: WithSecret } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: newWebhookId,
      perform: async ({ id: rotationId }) => {
        const question = { projectId, webhookId: params.id, rotationId };
        const { webhook, secret } = await sendRequest(RotateWebhookSecret, question);
        return created(webhook, { secret });
      },
    }),
});

export const webhookRoutes = [createWebhook, listWebhooks, getWebhook, changeWebhook, deleteWebhook, rotateSecret];

const OneMessage = dataOf(WebhookMessage);

const listMessages = defineRoute("listWebhookMessages", "get /api/v1/webhooks/{id}/messages", {
  params,
  summary: "List a webhook's messages, oldest first",
  description: "Kept for 30 days.",
  access: project("read"),
  query: z.strictObject({
    ...pageQuery,
    status: WebhookMessageStatus.optional().meta({ description: "Only messages with this status" }),
  }),
  responses: { 200: { description: "A page of messages", schema: pageOf(WebhookMessage) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, query }) => {
    const question = { projectId, webhookId: params.id, status: query.status, page: pageRequest(query) };
    return pageReply(await sendRequest(ListWebhookMessages, question));
  },
});

const getMessage = defineRoute("getWebhookMessage", "get /api/v1/webhooks/{id}/messages/{message}", {
  params: { ...params, message: webhookMessageParam },
  summary: "Read a message and its attempts",
  description:
    "Includes the posted body and the last 20 attempts, oldest first. With the scope `send` each has the receiver's response, which may quote the webhook's URL.",
  access: project("read"),
  responses: { 200: { description: "The message", schema: dataOf(WebhookMessageDetail) } },
  handle: async ({ sendRequest }, { caller, params: { id: webhookId, message: messageId } }) => {
    const { projectId } = caller;
    return ok(messageFor(caller, await sendRequest(GetWebhookMessage, { projectId, webhookId, messageId })));
  },
});

const resendMessage = defineRoute("resendWebhookMessage", "post /api/v1/webhooks/{id}/messages/{message}/resend", {
  params: { ...params, message: webhookMessageParam },
  summary: "Send a message again",
  description: "Sends it at once, whatever its status, and retries on the whole schedule if that fails.",
  access: writing,
  responses: { 202: { description: "The message, waiting to be sent", schema: OneMessage } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      // resending is repeatable
      perform: async () => {
        const question = { projectId, webhookId: params.id, messageId: params.message };
        return accepted(await sendRequest(ResendWebhookMessage, question));
      },
    }),
});

const pingWebhook = defineRoute("pingWebhook", "post /api/v1/webhooks/{id}/ping", {
  params,
  summary: "Send a test message",
  description:
    "Sends an event of type `io.herald.webhook.ping.v1`, whichever events the webhook receives, with one attempt. Read the message to see the result.",
  access: writing,
  responses: { 202: { description: "The message, waiting to be sent", schema: OneMessage } },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: newWebhookMessageId,
      perform: async ({ id }) => {
        const question = { projectId, webhookId: params.id, messageId: id };
        return accepted(await sendRequest(PingWebhook, question));
      },
    }),
});

const recoverWebhook = defineRoute("recoverWebhook", "post /api/v1/webhooks/{id}/recover", {
  params,
  summary: "Resend messages that failed since a time",
  description:
    "Selects by the time of the event, oldest first, up to 10,000 messages. When `more` is true, repeat the request for the next ones.",
  access: writing,
  body: RecoverWebhook,
  responses: {
    202: { description: "The number of messages that wait to be sent", schema: dataOf(Recovered) },
  },
  errors: ["webhook-disabled"],
  handle: async ({ sendRequest }, { caller: { projectId }, params, body, idempotent }) =>
    idempotent({
      // messages that already wait are not selected again
      perform: async () => {
        const question = { projectId, webhookId: params.id, since: new Date(body.since).toISOString() };
        return accepted(await sendRequest(RecoverWebhookRequest, question));
      },
    }),
});

export const webhookMessageRoutes = [listMessages, getMessage, resendMessage, pingWebhook, recoverWebhook];
