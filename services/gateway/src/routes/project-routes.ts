import {
  ChangeLimits,
  ChangeProject,
  CreateProject,
  defaultScopes,
  newProjectId,
  newProjectToken,
  newTokenId,
  OwnLimits,
  PauseSends,
  Project,
  ProjectLimit,
  projectRequests,
  roleIncludes,
  SetProjectKey,
  StatsQuery,
  secretHash,
  statsRequests,
  tokenRequests,
} from "@herald/contracts";
import { z } from "zod";
import {
  adminOnly,
  anyOperator,
  authorOf,
  type CallerOf,
  project,
  projectAdmin,
  projectOperator,
  projectViewer,
  viewer,
} from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";
import { toStatsRequest } from "./stats-request.ts";

const OneProject = dataOf(Project);

type PauseRequest = { readonly caller: CallerOf<"operator">; readonly body: z.output<typeof PauseSends> };
const pauseOf = ({ caller, body }: PauseRequest) => ({ by: authorOf(caller), ...body });

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
    },
    handle: async ({ sendRequest, now }, { caller, body, idempotent }) => {
      const { name, key, open_registration: openRegistration = true, first_token: withToken = true } = body.project;
      return idempotent({
        newId: newProjectId,
        perform: async ({ id: projectId }) => {
          const asked = { projectId, name, key, openRegistration, protectedMetadata: body.project.protected_metadata };
          if (!withToken) return created((await sendRequest(projectRequests.create, asked)).project);
          const token = newProjectToken();
          const first = { tokenId: newTokenId(now()), tokenHash: secretHash(token), createdBy: caller.operator.id };
          const { project, created: isNew } = await sendRequest(projectRequests.create, { ...asked, ...first });
          // An interrupted attempt created the project with a token that no caller received; this token is for the caller.
          if (!isNew)
            await sendRequest(tokenRequests.create, { projectId, ...first, name: "first", scopes: [...defaultScopes] });
          return created(project, { token });
        },
      });
    },
  }),
  forwardRoute("listProjects", "get /admin/v1/projects", {
    summary: "List projects, oldest first",
    description: "A `member` gets the projects of its grants.",
    access: anyOperator,
    forward: projectRequests.list,
    add: ({ caller: { operator } }) => ({
      only: roleIncludes(operator.role, "viewer") ? undefined : operator.projects.map(({ id }) => id),
    }),
    response: "A page of projects",
  }),
  forwardRoute("getProject", "get /admin/v1/projects/{id}", {
    summary: "Read a project",
    access: projectViewer,
    forward: projectRequests.get,
    response: "The project",
  }),
  defineRoute("listProjectLimits", "get /admin/v1/projects/{id}/limits", {
    summary: "List the limits and quotas of a project",
    description:
      "The project's limits, and how much of each is in use. Environment variables of Herald set defaults; an admin sets limits of single projects.",
    access: projectViewer,
    responses: {
      200: { description: "All limits, in a fixed order", schema: dataOf(z.array(ProjectLimit)) },
    },
    handle: async ({ projectLimits, sendRequest }, { params }) => {
      const quota = await sendRequest(projectRequests.deviceQuota, { projectId: params.id });
      return ok(await projectLimits(params.id, quota));
    },
  }),
  forwardRoute("changeProjectLimits", "patch /admin/v1/projects/{id}/limits", {
    summary: "Change limits and quotas of a project",
    description:
      "All gateways apply them within a second, also to requests in progress. `null` restores a default; the others stay as they are. A limit is for all gateways together: each counts its part, the limit divided by the live gateways, rounded up. `token` and `device` follow `project` unless they are set.",
    access: adminOnly,
    body: ChangeLimits,
    forward: projectRequests.changeLimits,
    add: ({ body }) => body,
    schema: OwnLimits,
    show: ({ limits }) => limits,
    response: "What is set for this project; the others have their defaults",
  }),
  forwardRoute("changeProject", "patch /admin/v1/projects/{id}", {
    summary: "Change a project",
    access: projectAdmin,
    body: ChangeProject,
    forward: projectRequests.change,
    add: ({ caller, body: { project } }) => ({
      name: project.name,
      openRegistration: project.open_registration,
      protectedMetadata: project.protected_metadata,
      staleAfter: project.stale_after,
      receipts: project.receipts,
      quietHours: project.quiet_hours,
      defaultTimeZone: project.default_time_zone,
      approval: project.approval,
      mayLoosen: caller.operator.role === "admin",
    }),
    response: "The changed project",
  }),
  forwardRoute("setProjectKey", "put /admin/v1/projects/{id}/key", {
    summary: "Set a project's key",
    description: "For a project that was created without one. A key never changes.",
    access: adminOnly,
    body: SetProjectKey,
    forward: projectRequests.setKey,
    add: ({ body }) => body,
    response: "The project with its key",
    errors: ["project-key-taken"],
  }),
  forwardRoute("pauseProject", "post /admin/v1/projects/{id}/pause", {
    summary: "Pause all sends of a project",
    description:
      "Herald starts no further push of the project after this response, test pushes included. Up to 50 pushes of each batch in progress may already be on their way to the provider. Sends are accepted and wait until the project resumes; their time to live runs on. Uploads of recipients are refused; everything else goes on. A paused project gets the new reason and the new `until`.",
    access: projectOperator,
    body: PauseSends,
    forward: projectRequests.pause,
    add: pauseOf,
    response: "The paused project",
  }),
  forwardRoute("resumeProject", "post /admin/v1/projects/{id}/resume", {
    summary: "Resume the sends of a project",
    description: "Sends that wait go on. Changes nothing if the project is not paused. A pause of all projects stays.",
    access: projectOperator,
    forward: projectRequests.resume,
    add: ({ caller }) => ({ by: authorOf(caller) }),
    response: "The project",
  }),
  forwardRoute("deleteProject", "delete /admin/v1/projects/{id}", {
    summary: "Delete a project and all its data",
    access: adminOnly,
    forward: projectRequests.delete,
    response: "The project is deleted",
  }),
  forwardRoute("getInstallation", "get /admin/v1/installation", {
    summary: "Read what holds for all projects",
    access: viewer,
    forward: projectRequests.installation,
    response: "The installation",
  }),
  forwardRoute("pauseInstallation", "post /admin/v1/pause", {
    summary: "Pause all sends of all projects",
    description: "What a pause of a project does, for every project, also for new ones.",
    access: adminOnly,
    body: PauseSends,
    forward: projectRequests.pauseAll,
    add: pauseOf,
    response: "The paused installation",
  }),
  forwardRoute("resumeInstallation", "post /admin/v1/resume", {
    summary: "Resume the sends of all projects",
    description: "Projects that are paused themselves stay paused.",
    access: adminOnly,
    forward: projectRequests.resumeAll,
    add: ({ caller }) => ({ by: authorOf(caller) }),
    response: "The installation",
  }),
];

export const getStats = forwardRoute("getStats", "get /api/v1/stats", {
  summary: "Read statistics of sent, failed and opened notifications",
  description:
    "At most 10 s behind. The range is extended to whole intervals of the time zone; a day has 23 or 25 hours when the clocks change.",
  access: project("read"),
  query: StatsQuery,
  forward: statsRequests.get,
  add: ({ query }, { now }) => ({ request: toStatsRequest(query, now()) }),
  response: "A series of intervals without gaps, and totals",
});
