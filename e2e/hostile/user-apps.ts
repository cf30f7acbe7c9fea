import { expectStatus, type HttpAnswer, request } from "@herald/testing";
import { apnsToken, type Project } from "../harness/project.ts";
import type { System } from "../harness/system.ts";
import { claimsOf, hs256 } from "../harness/user-tokens.ts";

/** A project with an identity secret. */
export type Named = Project & { readonly secret: string };

export const keysOf = (project: Project) => `/projects/${project.id}/identity-keys`;

export const tokenOf = (project: Named, user: string, change: Record<string, unknown> = {}) =>
  hs256(project.secret, { claims: claimsOf(project.id, user, change) });

export const userOf = async (project: Project, id: string) =>
  expectStatus(await project.call(`GET /devices/${id}`), 200).body.data.user_id;

/** The devices for which the provider accepted a notification. */
async function reached(project: Project, targets: string[]): Promise<string[]> {
  const { id } = await project.send({ title: "For the victim alone", targets });
  await project.final(id);
  return (await project.deliveries(id)).map(({ device_id }) => device_id).sort();
}

export type UserApps = ReturnType<typeof createUserApps>;

/** Actions of apps with users, and of their attackers. */
export const createUserApps = (system: System) => {
  async function newProject(name: string): Promise<Named> {
    const project = await system.project(name);
    const { body } = expectStatus(await system.admin(`POST ${keysOf(project)}`, { body: {} }), 201);
    return { ...project, secret: body.secret };
  }

  const identify = (project: Project, body: object, token?: string): Promise<HttpAnswer> =>
    request(system.gateway, "PUT /api/v1/identification", {
      token,
      body: { project_id: project.id, platform: "ios", ...body },
    });

  /** A phone on which a user logs in, as an app does it. */
  async function phone(project: Named, user?: string) {
    const token = apnsToken();
    const userToken = user === undefined ? undefined : tokenOf(project, user);
    const { body } = expectStatus(await identify(project, { identifier: token, user_token: userToken }), 201);
    return { id: body.data.id as string, token, credential: body.credential as string };
  }

  const own = (route: string, credential: string, body?: unknown) =>
    request(system.gateway, route.replace(" ", " /api/v1"), { token: credential, body });

  return { newProject, identify, phone, reached, own };
};
