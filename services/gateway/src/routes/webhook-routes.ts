import {
  ChangeWebhook,
  ChangeWebhookRequest,
  CreateWebhook,
  CreateWebhookRequest,
  DeleteWebhook,
  GetWebhook,
  ListWebhooks,
  listQuery,
  newWebhookId,
  pageOf,
  RotateWebhookSecret,
  Webhook,
  type WebhookId,
} from "@herald/contracts";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { webhookParam } from "./path-params.ts";

const OneWebhook = z.object({ data: Webhook });
const WithSecret = z.object({
  data: Webhook,
  secret: z.string().optional().meta({
    description: "`whsec_…`, the secret that signs messages; absent when a response is replayed",
  }),
});

/** `read` because a webhook receives what `read` shows; `send` because a token that only reads must not stop a webhook. */
export const writing = project("read", "send");
const one = { tag: "Events", params: { id: webhookParam }, errors: ["webhook-not-found"] } as const;

const createWebhook = defineRoute({
  method: "post",
  path: "/api/v1/webhooks",
  operationId: "createWebhook",
  tag: "Events",
  summary: "Create a webhook",
  description:
    "Herald posts the project's events to the URL from now on, signed as Standard Webhooks defines. Only this response contains the secret. Needs the scopes `read` and `send`.",
  access: writing,
  body: CreateWebhook,
  responses: { 201: { description: "The webhook and its secret", schema: WithSecret } },
  errors: ["webhook-limit"],
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) =>
    idempotent({
      newId: newWebhookId,
      perform: async ({ id }) => {
        const question = { projectId, webhookId: id as WebhookId, settings: body.webhook };
        const { webhook, secret } = await sendRequest(CreateWebhookRequest, question);
        return created({ data: webhook, secret });
      },
    }),
});

const listWebhooks = defineRoute({
  method: "get",
  path: "/api/v1/webhooks",
  operationId: "listWebhooks",
  tag: "Events",
  summary: "List webhooks",
  description: "Oldest first, unless `sort` says otherwise.",
  access: project("read"),
  query: z.strictObject(listQuery),
  responses: { 200: { description: "A page of webhooks, without their secrets", schema: pageOf(Webhook) } },
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    return pageReply(request, await sendRequest(ListWebhooks, { projectId, page: pageRequest(request.query) }));
  },
});

const getWebhook = defineRoute({
  ...one,
  method: "get",
  path: "/api/v1/webhooks/{id}",
  operationId: "getWebhook",
  summary: "Read a webhook",
  access: project("read"),
  responses: { 200: { description: "The webhook", schema: OneWebhook } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    ok({ data: await sendRequest(GetWebhook, { projectId, webhookId: params.id }) }),
});

const changeWebhook = defineRoute({
  ...one,
  method: "patch",
  path: "/api/v1/webhooks/{id}",
  operationId: "changeWebhook",
  summary: "Change, disable or enable a webhook",
  description:
    "Events that happen while it is disabled are stored as failed messages; `recover` sends them. Needs the scopes `read` and `send`.",
  access: writing,
  body: ChangeWebhook,
  responses: { 200: { description: "The changed webhook", schema: OneWebhook } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, body }) => {
    const question = { projectId, webhookId: params.id, change: body.webhook };
    return ok({ data: await sendRequest(ChangeWebhookRequest, question) });
  },
});

const deleteWebhook = defineRoute({
  ...one,
  method: "delete",
  path: "/api/v1/webhooks/{id}",
  operationId: "deleteWebhook",
  summary: "Delete a webhook and its messages",
  description: "Needs the scopes `read` and `send`.",
  access: writing,
  responses: { 204: { description: "The webhook is deleted" } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) => {
    await sendRequest(DeleteWebhook, { projectId, webhookId: params.id });
    return noContent();
  },
});

const rotateSecret = defineRoute({
  ...one,
  method: "post",
  path: "/api/v1/webhooks/{id}/secret",
  operationId: "rotateWebhookSecret",
  summary: "Rotate a webhook's secret",
  description:
    "For a day messages are signed with the previous secret too, so that the receiver can change without a gap. Needs the scopes `read` and `send`.",
  access: writing,
  responses: { 201: { description: "The webhook and its new secret", schema: WithSecret } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, idempotent }) =>
    idempotent({
      newId: newWebhookId,
      perform: async ({ id: rotationId }) => {
        const { webhook, secret } = await sendRequest(RotateWebhookSecret, {
          projectId,
          webhookId: params.id,
          rotationId,
        });
        return created({ data: webhook, secret });
      },
    }),
});

export const webhookRoutes = [createWebhook, listWebhooks, getWebhook, changeWebhook, deleteWebhook, rotateSecret];
