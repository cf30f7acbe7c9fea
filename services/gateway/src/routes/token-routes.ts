import {
  CreateToken,
  CreateTokenRequest,
  defaultScopes,
  ListTokens,
  newProjectToken,
  newTokenId,
  ProjectToken,
  pageOf,
  pageQuery,
  RevokeToken,
  secretHash,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";
import { admin, viewer } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { projectParam, tokenParam } from "./path-params.ts";

const createToken = defineRoute({
  method: "post",
  path: "/admin/v1/projects/{id}/tokens",
  operationId: "createToken",
  tag: "Administration",
  summary: "Create a project token",
  description: "Only this response contains the token. Without `scopes` it has all three.",
  access: admin,
  params: { id: projectParam },
  body: CreateToken,
  responses: {
    201: {
      description: "The token",
      schema: z.object({
        data: ProjectToken,
        token: z.string().optional().meta({ description: "The secret; absent when a response is replayed" }),
      }),
    },
  },
  errors: ["project-not-found"],
  handle: async ({ sendRequest, now }, { params, body, idempotent }) => {
    const { name, scopes = [...defaultScopes], expires_at } = body.token;
    const expiresAt = expires_at === undefined ? undefined : new Date(expires_at);
    const check = () => {
      if (expiresAt === undefined || expiresAt > now()) return;
      throw new HeraldError("validation-failed", "token.expires_at: must be in the future");
    };
    return idempotent({
      // An interrupted attempt left a token that no caller received, and its id would return that one.
      newId: () => "",
      check,
      perform: async () => {
        check();
        const token = newProjectToken();
        const data = await sendRequest(CreateTokenRequest, {
          projectId: params.id,
          tokenId: newTokenId(now()),
          tokenHash: secretHash(token),
          name,
          scopes,
          ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.toISOString() }),
        });
        return created({ data, token });
      },
    });
  },
});

const listTokens = defineRoute({
  method: "get",
  path: "/admin/v1/projects/{id}/tokens",
  operationId: "listTokens",
  tag: "Administration",
  summary: "List a project's tokens, oldest first",
  access: viewer,
  params: { id: projectParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of tokens, without their secrets", schema: pageOf(ProjectToken) } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, request) =>
    pageReply(
      request,
      await sendRequest(ListTokens, { projectId: request.params.id, page: pageRequest(request.query) }),
    ),
});

const revokeToken = defineRoute({
  method: "delete",
  path: "/admin/v1/projects/{id}/tokens/{token}",
  operationId: "revokeToken",
  tag: "Administration",
  summary: "Revoke a project token",
  description: "All gateways refuse it within a second.",
  access: admin,
  params: { id: projectParam, token: tokenParam },
  responses: { 204: { description: "The token is revoked" } },
  errors: ["project-not-found", "token-not-found"],
  handle: async ({ sendRequest }, { params }) => {
    await sendRequest(RevokeToken, { projectId: params.id, tokenId: params.token });
    return noContent();
  },
});

export const tokenRoutes = [createToken, listTokens, revokeToken];
