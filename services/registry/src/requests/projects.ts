import { handleRequest, type RequestListener } from "@herald/bus";
import {
  defaultProtectedMetadata,
  defaultScopes,
  type Project,
  type ProjectToken,
  projectRequests,
  tokenFingerprint,
  tokenRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { mapPage, pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { type PauseEntry, pauseView } from "../domain/pauses.ts";
import { eventContext } from "../domain/registry-events.ts";
import { keyTaken, type ProjectDocument, type TokenEntry } from "../stores/project-store.ts";

/** `ofAll`: the pause of all projects. */
export const projectView = (project: ProjectDocument, ofAll: PauseEntry | undefined): Project => ({
  id: project._id,
  ...(project.key && { key: project.key }),
  name: project.name,
  open_registration: project.openRegistration,
  protected_metadata: [...project.protectedMetadata],
  ...(project.staleAfter && { stale_after: project.staleAfter }),
  receipts: project.receipts ?? false,
  ...(project.quietHours && { quiet_hours: project.quietHours }),
  default_time_zone: project.defaultTimeZone ?? "UTC",
  ...(project.approval && { approval: project.approval }),
  ...pauseView(project.paused, ofAll),
  created_at: project.createdAt.toISOString(),
});

const tokenView = (token: TokenEntry): ProjectToken => ({
  id: token.id,
  name: token.name,
  scopes: [...token.scopes],
  fingerprint: tokenFingerprint(token.hash),
  ...(token.expiresAt && { expires_at: token.expiresAt.toISOString() }),
  created_at: token.createdAt.toISOString(),
});

/** Changes are replicated to the gateways before the reply. */
export const handleProjectRequests = ({
  bus,
  projects,
  pauses,
  devices,
  deviceQuota,
  replication,
  publishSoon,
  now,
}: Pick<
  Deps,
  "bus" | "deviceQuota" | "devices" | "now" | "pauses" | "projects" | "publishSoon" | "replication"
>): RequestListener[] => [
  handleRequest(
    bus,
    projectRequests.create,
    async ({ projectId: _id, tokenId: id, tokenHash: hash, key, createdBy, ...settings }) => {
      const createdAt = now();
      const tokens =
        id && hash
          ? [{ id, hash, name: "first", scopes: defaultScopes, ...(createdBy && { createdBy }), createdAt }]
          : [];
      const fresh = {
        protectedMetadata: defaultProtectedMetadata,
        ...settings,
        ...(key && { key }),
        tokens,
        createdAt,
      };
      const created = await projects.insert({ _id, ...fresh });
      // Also a project that another caller has deleted since.
      if (!created && key && !(await projects.findAny(_id))) throw keyTaken(key);
      const project = await projects.get(_id);
      await replication.replicate(project);
      return { project: projectView(project, await pauses.ofAll()), created };
    },
  ),

  handleRequest(bus, projectRequests.list, async ({ page, ...which }) => {
    const ofAll = await pauses.ofAll();
    return mapPage(await projects.list(page, which), (project) => projectView(project, ofAll));
  }),

  handleRequest(bus, projectRequests.setKey, async ({ projectId, key }) => {
    const project = await projects.setKey(projectId, key);
    if (project) return projectView(project, await pauses.ofAll());
    const { key: own } = await projects.get(projectId);
    throw new HeraldError("validation-failed", `key: the project has the key ${own}, which is fixed`);
  }),

  handleRequest(bus, projectRequests.get, async ({ projectId }) =>
    projectView(await projects.get(projectId), await pauses.ofAll()),
  ),

  handleRequest(bus, projectRequests.deviceQuota, async ({ projectId }) => {
    await projects.get(projectId);
    return { devices: await devices.count(projectId), limit: deviceQuota.max };
  }),

  handleRequest(bus, projectRequests.change, async ({ projectId, mayLoosen, ...settings }) => {
    const project = await projects.change(projectId, settings, mayLoosen);
    await replication.replicateSettings(projectId);
    await replication.replicateRules(projectId);
    return projectView(project, await pauses.ofAll());
  }),

  handleRequest(bus, projectRequests.changeLimits, async ({ projectId, limits }) => {
    const project = await projects.changeLimits(projectId, limits);
    await replication.replicateSettings(projectId);
    return { limits: project.limits ?? {} };
  }),

  handleRequest(bus, projectRequests.delete, async ({ projectId }) => {
    const project = await projects.markDeleted(eventContext(projectId, now()));
    await replication.replicate(project);
    publishSoon.project(projectId);
    return {};
  }),

  handleRequest(bus, tokenRequests.create, async ({ projectId, tokenId, tokenHash: hash, expiresAt, ...fields }) => {
    const expires = expiresAt !== undefined && { expiresAt: new Date(expiresAt) };
    await projects.addToken(projectId, { id: tokenId, hash, ...fields, ...expires, createdAt: now() });
    // Read again: a repeated request gets the token that the first one created.
    const project = await projects.get(projectId);
    const token = project.tokens.find(({ id, revokedAt }) => id === tokenId && !revokedAt);
    if (!token) throw notFound("token-not-found", "token", "it was revoked");
    await replication.replicateToken(projectId, token.hash);
    return tokenView(token);
  }),

  handleRequest(bus, tokenRequests.list, async ({ projectId, page }) => {
    const project = await projects.get(projectId);
    const rows = project.tokens.filter(({ revokedAt }) => !revokedAt).map(tokenView);
    return pageOfRows(rows, { request: page, key: ({ id }) => id });
  }),

  handleRequest(bus, tokenRequests.revoke, async ({ projectId, tokenId }) => {
    const token = await projects.revokeToken(projectId, tokenId, now());
    if (!token) {
      await projects.get(projectId);
      throw notFound("token-not-found", "token");
    }
    await replication.replicateToken(projectId, token.hash);
    await projects.removeRevokedToken(projectId, tokenId);
    return {};
  }),
];
