import { handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeProjectRequest,
  CreateProjectRequest,
  CreateTokenRequest,
  DeleteProject,
  defaultProtectedMetadata,
  defaultScopes,
  GetDeviceQuota,
  GetProject,
  ListProjects,
  ListTokens,
  type ProjectId,
  RevokeToken,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import type { ProjectDocument } from "../stores/project-store.ts";
import { projectView, tokenView } from "./views.ts";

export const projectNotFound = (): HeraldError =>
  new HeraldError("project-not-found", "project: there is none of this id");

/** Changes are replicated to the gateways before the reply. */
export const handleProjectRequests = ({
  bus,
  projects,
  devices,
  deviceQuota,
  replication,
  publishQueue,
  now,
}: Deps): RequestListener[] => {
  const find = async (id: ProjectId): Promise<ProjectDocument> => {
    const project = await projects.find(id);
    if (!project) throw projectNotFound();
    return project;
  };

  return [
    handleRequest(bus, CreateProjectRequest, async ({ projectId, tokenId, tokenHash, ...settings }) => {
      const { name, openRegistration, protectedMetadata = defaultProtectedMetadata } = settings;
      const createdAt = now();
      const token = { id: tokenId, hash: tokenHash, name: "first", scopes: defaultScopes, createdAt };
      const created = await projects.insert({
        _id: projectId,
        name,
        openRegistration,
        protectedMetadata,
        tokens: [token],
        createdAt,
      });
      const project = await find(projectId);
      await replication.replicateProject(project);
      return { project: projectView(project), created };
    }),

    handleRequest(bus, ListProjects, async ({ page }) => {
      const found = await projects.list(page);
      return { ...found, data: found.data.map(projectView) };
    }),

    handleRequest(bus, GetProject, async ({ projectId }) => projectView(await find(projectId))),

    handleRequest(bus, GetDeviceQuota, async ({ projectId }) => {
      await find(projectId);
      return { devices: await devices.count(projectId), limit: deviceQuota.max };
    }),

    handleRequest(
      bus,
      ChangeProjectRequest,
      async ({ projectId, name, openRegistration, protectedMetadata, staleAfter }) => {
        const fields = {
          ...(protectedMetadata !== undefined && { protectedMetadata }),
          ...(name !== undefined && { name }),
          ...(openRegistration !== undefined && { openRegistration }),
          ...(staleAfter !== undefined && { staleAfter }),
        };
        const project = await projects.change(projectId, fields);
        if (!project) throw projectNotFound();
        await replication.replicateSettings(projectId);
        return projectView(project);
      },
    ),

    handleRequest(bus, DeleteProject, async ({ projectId }) => {
      const project = await projects.markDeleted(eventContext(projectId, now()));
      if (!project) throw projectNotFound();
      await replication.replicateProject(project);
      publishQueue.project(projectId);
      return {};
    }),

    handleRequest(bus, CreateTokenRequest, async ({ projectId, tokenId, tokenHash, name, scopes, expiresAt }) => {
      await projects.addToken(projectId, {
        id: tokenId,
        hash: tokenHash,
        name,
        scopes,
        ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt) }),
        createdAt: now(),
      });
      // Read again: a repeated request gets the token that the first one created.
      const project = await find(projectId);
      const token = project.tokens.find(({ id, revokedAt }) => id === tokenId && !revokedAt);
      if (!token) throw new HeraldError("token-not-found", "token: it was revoked");
      await replication.replicateToken(projectId, token.hash);
      return tokenView(token);
    }),

    handleRequest(bus, ListTokens, async ({ projectId, page }) => {
      const project = await find(projectId);
      const rows = project.tokens.filter(({ revokedAt }) => !revokedAt).map(tokenView);
      return pageOfRows(rows, { request: page, key: ({ id }) => id });
    }),

    handleRequest(bus, RevokeToken, async ({ projectId, tokenId }) => {
      const token = await projects.revokeToken(projectId, tokenId, now());
      if (!token) {
        await find(projectId);
        throw new HeraldError("token-not-found", "token: the project has none of this id");
      }
      await replication.replicateToken(projectId, token.hash);
      await projects.removeRevokedToken(projectId, tokenId);
      return {};
    }),
  ];
};
