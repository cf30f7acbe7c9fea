import {
  CreateToken,
  defaultScopes,
  newProjectToken,
  newTokenId,
  ProjectToken,
  secretHash,
  tokenRequests,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { projectAdmin, projectViewer } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";

export const tokenRoutes = [
  defineRoute("createToken", "post /admin/v1/projects/{id}/tokens", {
    summary: "Create a project token",
    description: "Only this response contains the token. Without `scopes` it has all three.",
    access: projectAdmin,
    body: CreateToken,
    responses: {
      201: {
        description: "The token",
        schema: dataOf(ProjectToken).extend({
          token: shownOnce("The secret; absent when a response is replayed"),
        }),
      },
    },
    handle: async ({ sendRequest, now }, { caller, params, body, idempotent }) => {
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
          const data = await sendRequest(tokenRequests.create, {
            projectId: params.id,
            tokenId: newTokenId(now()),
            tokenHash: secretHash(token),
            name,
            scopes,
            expiresAt: expiresAt?.toISOString(),
            createdBy: caller.operator.id,
          });
          return created(data, { token });
        },
      });
    },
  }),
  forwardRoute("listTokens", "get /admin/v1/projects/{id}/tokens", {
    summary: "List a project's tokens, oldest first",
    access: projectViewer,
    forward: tokenRequests.list,
    response: "A page of tokens, without their secrets",
  }),
  forwardRoute("revokeToken", "delete /admin/v1/projects/{id}/tokens/{token}", {
    summary: "Revoke a project token",
    description: "All gateways refuse it within a second.",
    access: projectAdmin,
    forward: tokenRequests.revoke,
    response: "The token is revoked",
  }),
];
