import {
  ChangeWebhook,
  CreateWebhook,
  newWebhookId,
  newWebhookMessageId,
  RecoverWebhook,
  Webhook,
  webhookMessageRequests,
  webhookRequests,
} from "@herald/contracts";
import { project } from "../auth/caller.ts";
import { messageFor, webhookFor } from "../auth/shown-to.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";

const OneWebhook = dataOf(Webhook);
const WithSecret = OneWebhook.extend({
  secret: shownOnce("`whsec_…`, the secret that signs messages; absent when a response is replayed"),
});

/** `read` because a webhook receives the data that `read` allows; `send` because a token that only reads must not stop a webhook. */
export const writing = project("read", "send");

export const webhookRoutes = [
  defineRoute("createWebhook", "post /api/v1/webhooks", {
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
          const { webhook, secret } = await sendRequest(webhookRequests.create, question);
          return created(webhook, { secret });
        },
      }),
  }),
  forwardRoute("listWebhooks", "get /api/v1/webhooks", {
    summary: "List webhooks",
    description:
      "Oldest first, unless `sort` says otherwise. A token that may not change webhooks gets `url` without path and query, because those of chat systems are credentials.",
    access: project("read"),
    forward: webhookRequests.list,
    show: (webhook, { caller }) => webhookFor(caller)(webhook),
    response: "A page of webhooks, without their secrets",
  }),
  forwardRoute("getWebhook", "get /api/v1/webhooks/{id}", {
    summary: "Read a webhook",
    description: "Without the scope `send` it has `url` without path and query.",
    access: project("read"),
    forward: webhookRequests.get,
    show: (webhook, { caller }) => webhookFor(caller)(webhook),
    response: "The webhook",
  }),
  forwardRoute("changeWebhook", "patch /api/v1/webhooks/{id}", {
    summary: "Change, disable or enable a webhook",
    description: "Events that happen while it is disabled are stored as failed messages; `recover` sends them.",
    access: writing,
    body: ChangeWebhook,
    forward: webhookRequests.change,
    add: ({ body }) => ({ change: body.webhook }),
    response: "The changed webhook",
  }),
  forwardRoute("deleteWebhook", "delete /api/v1/webhooks/{id}", {
    summary: "Delete a webhook and its messages",
    access: writing,
    forward: webhookRequests.delete,
    response: "The webhook is deleted",
  }),
  defineRoute("rotateWebhookSecret", "post /api/v1/webhooks/{id}/secret", {
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
          const { webhook, secret } = await sendRequest(webhookRequests.rotate, question);
          return created(webhook, { secret });
        },
      }),
  }),
];

export const webhookMessageRoutes = [
  forwardRoute("listWebhookMessages", "get /api/v1/webhooks/{id}/messages", {
    summary: "List a webhook's messages, oldest first",
    description: "Kept for 30 days.",
    access: project("read"),
    forward: webhookMessageRequests.list,
    response: "A page of messages",
  }),
  forwardRoute("getWebhookMessage", "get /api/v1/webhooks/{id}/messages/{message}", {
    summary: "Read a message and its attempts",
    description:
      "Includes the posted body and the last 20 attempts, oldest first. With the scope `send` each has the receiver's response, which may quote the webhook's URL.",
    access: project("read"),
    forward: webhookMessageRequests.get,
    show: (message, { caller }) => messageFor(caller, message),
    response: "The message",
  }),
  forwardRoute("resendWebhookMessage", "post /api/v1/webhooks/{id}/messages/{message}/resend", {
    summary: "Send a message again",
    description: "Sends it at once, whatever its status, and retries on the whole schedule if that fails.",
    access: writing,
    forward: webhookMessageRequests.resend,
    status: 202,
    response: "The message, waiting to be sent",
    errors: ["webhook-disabled"],
  }),
  forwardRoute("pingWebhook", "post /api/v1/webhooks/{id}/ping", {
    summary: "Send a test message",
    description:
      "Sends an event of type `io.herald.webhook.ping.v1`, whichever events the webhook receives, with one attempt. Read the message to see the result.",
    access: writing,
    forward: webhookRequests.ping,
    newId: { messageId: newWebhookMessageId },
    status: 202,
    response: "The message, waiting to be sent",
    errors: ["webhook-disabled"],
  }),
  forwardRoute("recoverWebhook", "post /api/v1/webhooks/{id}/recover", {
    summary: "Resend messages that failed since a time",
    description:
      "Selects by the time of the event, oldest first, up to 10,000 messages. When `more` is true, repeat the request for the next ones.",
    access: writing,
    body: RecoverWebhook,
    forward: webhookRequests.recover,
    add: ({ body }) => ({ since: new Date(body.since).toISOString() }),
    status: 202,
    response: "The number of messages that wait to be sent",
    errors: ["webhook-disabled"],
  }),
];
