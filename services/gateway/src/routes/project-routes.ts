import {
  ChangeLimits,
  ChangeLimitsRequest,
  ChangeProject,
  ChangeProjectRequest,
  CreateProject,
  CreateProjectRequest,
  CreateTokenRequest,
  DeleteProject,
  defaultScopes,
  GetDeviceQuota,
  GetProject,
  GetStats,
  ListProjects,
  newProjectId,
  newProjectToken,
  newTokenId,
  OwnLimits,
  Project,
  ProjectLimit,
  roleIncludes,
  SetProjectKey,
  SetProjectKeyRequest,
  StatsQuery,
  secretHash,
} from "@herald/contracts";
import { z } from "zod";
import { adminOnly, anyOperator, project, projectAdmin, projectViewer } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { toStatsRequest } from "./stats-request.ts";

const OneProject = dataOf(Project);

export const projectRoutes = [
  defineRoute("createProject", "post /admin/v1/projects", {
    summary: "Create a project",
    description:
      "Creates a first token with all scopes, which only this response contains. Without `protected_metadata` clients cannot write `user_id`, `user_email`, `email` and `phone`.",
    access: adminOnly,
    body: CreateProject,
    errors: ["project-key-taken"],
    responses: {
      201: {
        description: "The project and its first token",
        schema: OneProject.extend({
          token: shownOnce("The project token; absent when a response is replayed, and without a first token"),
        }),
      },
    });
  },
});

const listProjects = defineRoute("listProjects", "get /admin/v1/projects", {
  summary: "List projects, oldest first",
  description: "A `member` gets the projects of its grants.",
  access: anyOperator,
  query: z.strictObject({
    ...pageQuery,
    key: ProjectKey.optional().meta({ description: "Only the project with this key" }),
  }),
  responses: { 200: { description: "A page of projects", schema: pageOf(Project) } },
  handle: async ({ sendRequest }, { query, caller: { operator } }) => {
    const only = roleIncludes(operator.role, "viewer") ? undefined : operator.projects.map(({ id }) => id);
    return pageReply(await sendRequest(ListProjects, { page: pageRequest(query), only, key: query.key }));
  },
});

const getProject = defineRoute("getProject", "get /admin/v1/projects/{id}", {
  summary: "Read a project",
  access: projectViewer,
  params: { id: projectParam },
  responses: { 200: { description: "The project", schema: OneProject } },
  handle: async ({ sendRequest }, { params }) => ok(await sendRequest(GetProject, { projectId: params.id })),
});

const listProjectLimits = defineRoute("listProjectLimits", "get /admin/v1/projects/{id}/limits", {
  summary: "List the limits and quotas of a project",
  description:
    "The project's limits, and how much of each is in use. Environment variables of Herald set defaults; an admin sets limits of single projects.",
  access: projectViewer,
  params: { id: projectParam },
  responses: {
    200: { description: "All limits, in a fixed order", schema: dataOf(z.array(ProjectLimit)) },
  },
  handle: async ({ projectLimits, sendRequest }, { params }) => {
    const quota = await sendRequest(GetDeviceQuota, { projectId: params.id });
    return ok(await projectLimits(params.id, quota));
  },
});

const changeProjectLimits = defineRoute("changeProjectLimits", "patch /admin/v1/projects/{id}/limits", {
  summary: "Change limits and quotas of a project",
  description:
    "All gateways apply them within a second, also to requests in progress. `null` restores a default; the others stay as they are. A limit is for all gateways together: each counts its part, the limit divided by the live gateways, rounded up. `token` and `device` follow `project` unless they are set.",
  access: adminOnly,
  params: { id: projectParam },
  body: ChangeLimits,
  responses: {
    200: { description: "What is set for this project; the others have their defaults", schema: dataOf(OwnLimits) },
  },
  handle: async ({ sendRequest }, { params, body }) => {
    const { limits } = await sendRequest(ChangeLimitsRequest, { projectId: params.id, limits: body.limits });
    return ok(limits);
  },
});

const changeProject = defineRoute("changeProject", "patch /admin/v1/projects/{id}", {
  summary: "Change a project",
  access: projectAdmin,
  params: { id: projectParam },
  body: ChangeProject,
  responses: { 200: { description: "The changed project", schema: OneProject } },
  handle: async ({ sendRequest }, { params, body: { project } }) => {
    const { name, open_registration: openRegistration, protected_metadata: protectedMetadata } = project;
    const change = {
      name,
      openRegistration,
      protectedMetadata,
      staleAfter: project.stale_after,
      receipts: project.receipts,
      quietHours: project.quiet_hours,
      defaultTimeZone: project.default_time_zone,
    };
    return ok(await sendRequest(ChangeProjectRequest, { projectId: params.id, ...change }));
  },
});

const setProjectKey = defineRoute("setProjectKey", "put /admin/v1/projects/{id}/key", {
  summary: "Set a project's key",
  description: "For a project that was created without one. A key never changes.",
  access: adminOnly,
  params: { id: projectParam },
  body: SetProjectKey,
  responses: { 200: { description: "The project with its key", schema: OneProject } },
  errors: ["project-key-taken"],
  handle: async ({ sendRequest }, { params, body: { key } }) =>
    ok(await sendRequest(SetProjectKeyRequest, { projectId: params.id, key })),
});

const deleteProject = defineRoute("deleteProject", "delete /admin/v1/projects/{id}", {
  summary: "Delete a project and all its data",
  access: adminOnly,
  params: { id: projectParam },
  responses: { 204: { description: "The project is deleted" } },
  handle: async ({ sendRequest }, { params }) => sendRequest(DeleteProject, { projectId: params.id }).then(noContent),
});

export const projectRoutes = [
  createProject,
  listProjects,
  getProject,
  listProjectLimits,
  changeProjectLimits,
  changeProject,
  setProjectKey,
  deleteProject,
];

export const getStats = defineRoute("getStats", "get /api/v1/stats", {
  summary: "Read statistics of sent, failed and opened notifications",
  description:
    "At most 10 s behind. The range is extended to whole intervals of the time zone; a day has 23 or 25 hours when the clocks change.",
  access: project("read"),
  query: StatsQuery,
  forward: GetStats,
  add: ({ query }, { now }) => ({ request: toStatsRequest(query, now()) }),
  answer: "A series of intervals without gaps, and totals",
});
