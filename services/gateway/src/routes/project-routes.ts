import {
  ChangeProject,
  ChangeProjectRequest,
  CreateProject,
  CreateProjectRequest,
  CreateTokenRequest,
  DeleteProject,
  defaultScopes,
  GetDeviceQuota,
  GetProject,
  ListProjects,
  newProjectId,
  newProjectToken,
  newTokenId,
  Project,
  type ProjectId,
  ProjectLimit,
  pageOf,
  pageQuery,
  secretHash,
} from "@herald/contracts";
import { z } from "zod";
import { admin, viewer } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { projectParam } from "./path-params.ts";

const OneProject = z.object({ data: Project });

const createProject = defineRoute({
  method: "post",
  path: "/admin/v1/projects",
  operationId: "createProject",
  tag: "Administration",
  summary: "Create a project",
  description:
    "Creates a first token with all scopes, which only this response contains. Without `protected_metadata` clients cannot write `user_id`, `user_email`, `email` and `phone`.",
  access: admin,
  body: CreateProject,
  responses: {
    201: {
      description: "The project and its first token",
      schema: z.object({
        data: Project,
        token: z.string().optional().meta({ description: "The project token; absent when a response is replayed" }),
      }),
    },
  },
  handle: async ({ sendRequest, now }, { body, idempotent }) => {
    const { name, open_registration: openRegistration = true, protected_metadata: protectedMetadata } = body.project;
    return idempotent({
      newId: newProjectId,
      perform: async ({ id }) => {
        const projectId = id as ProjectId;
        const token = newProjectToken();
        const first = { tokenId: newTokenId(now()), tokenHash: secretHash(token) };
        const { project, created: isNew } = await sendRequest(CreateProjectRequest, {
          projectId,
          name,
          openRegistration,
          ...(protectedMetadata === undefined ? {} : { protectedMetadata }),
          ...first,
        });
        // An interrupted attempt created the project with a token that no caller received; this one is for the caller.
        if (!isNew)
          await sendRequest(CreateTokenRequest, { projectId, ...first, name: "first", scopes: [...defaultScopes] });
        return created({ data: project, token });
      },
    });
  },
});

const listProjects = defineRoute({
  method: "get",
  path: "/admin/v1/projects",
  operationId: "listProjects",
  tag: "Administration",
  summary: "List projects, oldest first",
  access: viewer,
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of projects", schema: pageOf(Project) } },
  handle: async ({ sendRequest }, request) =>
    pageReply(request, await sendRequest(ListProjects, { page: pageRequest(request.query) })),
});

const getProject = defineRoute({
  method: "get",
  path: "/admin/v1/projects/{id}",
  operationId: "getProject",
  tag: "Administration",
  summary: "Read a project",
  access: viewer,
  params: { id: projectParam },
  responses: { 200: { description: "The project", schema: OneProject } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, { params }) => ok({ data: await sendRequest(GetProject, { projectId: params.id }) }),
});

const listProjectLimits = defineRoute({
  method: "get",
  path: "/admin/v1/projects/{id}/limits",
  operationId: "listProjectLimits",
  tag: "Administration",
  summary: "List the limits and quotas of a project",
  description:
    "What environment variables of Herald allow every project, and how much of it this project uses. They are changed there, and a restart applies them.",
  access: viewer,
  params: { id: projectParam },
  responses: {
    200: { description: "All limits, in a fixed order", schema: z.object({ data: z.array(ProjectLimit) }) },
  },
  errors: ["project-not-found"],
  handle: async ({ projectLimits, sendRequest }, { params }) => {
    const quota = await sendRequest(GetDeviceQuota, { projectId: params.id });
    return ok({ data: await projectLimits(params.id, quota) });
  },
});

const changeProject = defineRoute({
  method: "patch",
  path: "/admin/v1/projects/{id}",
  operationId: "changeProject",
  tag: "Administration",
  summary: "Change a project",
  access: admin,
  params: { id: projectParam },
  body: ChangeProject,
  responses: { 200: { description: "The changed project", schema: OneProject } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, { params, body: { project } }) => {
    const data = await sendRequest(ChangeProjectRequest, {
      projectId: params.id,
      ...(project.name === undefined ? {} : { name: project.name }),
      ...(project.open_registration === undefined ? {} : { openRegistration: project.open_registration }),
      ...(project.protected_metadata === undefined ? {} : { protectedMetadata: project.protected_metadata }),
      ...(project.stale_after === undefined ? {} : { staleAfter: project.stale_after }),
    });
    return ok({ data });
  },
});

const deleteProject = defineRoute({
  method: "delete",
  path: "/admin/v1/projects/{id}",
  operationId: "deleteProject",
  tag: "Administration",
  summary: "Delete a project and all its data",
  access: admin,
  params: { id: projectParam },
  responses: { 204: { description: "The project is deleted" } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, { params }) => {
    await sendRequest(DeleteProject, { projectId: params.id });
    return noContent();
  },
});

export const projectRoutes = [createProject, listProjects, getProject, listProjectLimits, changeProject, deleteProject];
