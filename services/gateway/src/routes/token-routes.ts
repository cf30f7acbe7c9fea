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
import { projectAdmin, projectViewer } from "../auth/caller.ts";
import { created, noContent, pageReply, pageRequest } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { projectParam, tokenParam } from "./path-params.ts";

const createToken = defineRoute("createToken", "post /admin/v1/projects/{id}/tokens", {
  summary: "Create a project token",
  description: "Only this response contains the token. Without `scopes` it has all three.",
  access: projectAdmin,
  params: { id: projectParam },
  body: CreateToken,
  responses: {
    201: {
      description: "The token",
      schema: dataOf(ProjectToken).extend({
        token: shownOnce("The secret; absent when a response is replayed"),
      }),
    },
  },
  handle: async ({ sendRequest, now }, { params, body, idempotent }) => {
    const { name, scopes = [...defaultScopes], expires_at } = body.token;
    const expiresAt = expires_at === undefined ? undefined : new Date(expires_at);
    const check = () => {
      if (expiresAt === undefined || expiresAt > now()) return;
      throw new HeraldError("validation-failed", "token.expires_at: must be in the future");
    };
    return idempotent({
      // An interrupted attempt left a token that no caller received; with the same id, registry would return that token.
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
          expiresAt: expiresAt?.toISOString(),
        });
        return created(data, { token });
      },
    });
  },
});

const listTokens = defineRoute("listTokens", "get /admin/v1/projects/{id}/tokens", {
  summary: "List a project's tokens, oldest first",
  access: projectViewer,
  params: { id: projectParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of tokens, without their secrets", schema: pageOf(ProjectToken) } },
  handle: async ({ sendRequest }, { params, query }) =>
    pageReply(await sendRequest(ListTokens, { projectId: params.id, page: pageRequest(query) })),
});

const revokeToken = defineRoute("revokeToken", "delete /admin/v1/projects/{id}/tokens/{token}", {
  summary: "Revoke a project token",
  description: "All gateways refuse it within a second.",
  access: projectAdmin,
  params: { id: projectParam, token: tokenParam },
  responses: { 204: { description: "The token is revoked" } },
  handle: async ({ sendRequest }, { params }) =>
    sendRequest(RevokeToken, { projectId: params.id, tokenId: params.token }).then(noContent),
});

export const tokenRoutes = [createToken, listTokens, revokeToken];
