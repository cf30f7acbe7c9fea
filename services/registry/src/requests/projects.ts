import { randomUUID } from "node:crypto";
import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  allScopes,
  ChangeProjectRequest,
  CreateProjectRequest,
  DeleteProject,
  defaultProtectedMetadata,
  GetProject,
  ListProjects,
  type ProjectId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { KnownProjects } from "../jobs/replicate-projects.ts";
import type { ProjectDocument, ProjectStore } from "../stores/project-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import { projectView } from "./views.ts";

export type ProjectParts = {
  readonly projects: ProjectStore;
  readonly knownProjects: KnownProjects;
  readonly announce: Announce;
  readonly now: () => Date;
};

export const noProject = (): HeraldError => new HeraldError("project-not-found", "project: there is none of this id");

/** Each tells the gateways before it answers, so that what was answered is true everywhere. */
export const answerProjects = (
  bus: Bus,
  { projects, knownProjects, announce, now }: ProjectParts,
): RequestListener[] => {
  const find = async (id: ProjectId): Promise<ProjectDocument> => {
    const project = await projects.find(id);
    if (!project) throw noProject();
    return project;
  };

  return [
    handleRequest(bus, CreateProjectRequest, async ({ projectId, tokenId, tokenHash, ...settings }) => {
      const { name, openRegistration, protectedMetadata = defaultProtectedMetadata } = settings;
      const createdAt = now();
      const token = { id: tokenId, hash: tokenHash, name: "first", scopes: allScopes, createdAt };
      const created = await projects.insert({
        _id: projectId,
        name,
        openRegistration,
        protectedMetadata,
        tokens: [token],
        createdAt,
      });
      const project = await find(projectId);
      await knownProjects.tellAll(project);
      return { project: projectView(project), created };
    }),

    handleRequest(bus, ListProjects, async ({ page }) => {
      const { data, ...rest } = await projects.list(page);
      const rows = data.map(projectView);
      return { data: rows, ...rest } as { data: typeof rows; next: string | null };
    }),

    handleRequest(bus, GetProject, async ({ projectId }) => projectView(await find(projectId))),

    handleRequest(bus, ChangeProjectRequest, async ({ projectId, name, openRegistration, protectedMetadata }) => {
      const fields = {
        ...(protectedMetadata !== undefined && { protectedMetadata }),
        ...(name !== undefined && { name }),
        ...(openRegistration !== undefined && { openRegistration }),
      };
      const project = await projects.change(projectId, fields);
      if (!project) throw noProject();
      await knownProjects.tellSettings(projectId);
      return projectView(project);
    }),

    handleRequest(bus, DeleteProject, async ({ projectId }) => {
      const project = await projects.markDeleted({ projectId, at: now(), newId: randomUUID });
      if (!project) throw noProject();
      await knownProjects.tellAll(project);
      announce.project(projectId);
      return {};
    }),
  ];
};
