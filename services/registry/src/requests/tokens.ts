import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import { CreateTokenRequest, ListTokens, RevokeToken } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import { noProject, type ProjectParts } from "./projects.ts";
import { tokenView } from "./views.ts";

/** Each tells the gateways before it answers, so that what was answered is true everywhere. */
export const answerTokens = (bus: Bus, { projects, knownProjects, now }: ProjectParts): RequestListener[] => [
  handleRequest(bus, CreateTokenRequest, async ({ projectId, tokenId, tokenHash, name, scopes, expiresAt }) => {
    await projects.addToken(projectId, {
      id: tokenId,
      hash: tokenHash,
      name,
      scopes,
      ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt) }),
      createdAt: now(),
    });
    // Not what was sent: a request that is repeated gets the token that the first one made.
    const project = await projects.find(projectId);
    if (!project) throw noProject();
    const token = project.tokens.find(({ id, revokedAt }) => id === tokenId && !revokedAt);
    if (!token) throw new HeraldError("token-not-found", "token: it was revoked");
    await knownProjects.tellToken(projectId, token.hash);
    return tokenView(token);
  }),

  handleRequest(bus, ListTokens, async ({ projectId, page }) => {
    const project = await projects.find(projectId);
    if (!project) throw noProject();
    const rows = project.tokens.filter(({ revokedAt }) => !revokedAt).map(tokenView);
    return pageOfRows(rows, { request: page, key: ({ id }) => id });
  }),

  handleRequest(bus, RevokeToken, async ({ projectId, tokenId }) => {
    const token = await projects.revokeToken(projectId, tokenId, now());
    if (!token) {
      if (!(await projects.find(projectId))) throw noProject();
      throw new HeraldError("token-not-found", "token: the project has none of this id");
    }
    await knownProjects.tellToken(projectId, token.hash);
    await projects.forgetToken(projectId, tokenId);
    return {};
  }),
];
