import { type Bus, openBucket } from "@herald/bus";
import {
  type DeclaredKind,
  defaultScopes,
  type IdentityKey,
  type Installation,
  identityKeyRequests,
  kindRequests,
  newIdentitySecret,
  type OwnLimits,
  type Project,
  type ProjectId,
  type ProjectPause,
  ProjectRecord,
  type ProjectToken,
  projectRequests,
  projectSettingsKey,
  TokenRecord,
  tokenKey,
  tokenRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import type { z } from "zod";
import { at, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

/** Registry's projects and tokens, with the records that gateways watch. */
export const serveProjects = (serve: Serve, bus: Bus) => {
  const projects = new Map<string, Project>();
  const tokens = new Map<string, Owned<ProjectToken> & { hash: string }>();
  const tokenBucket = openBucket(bus, "push_tokens", TokenRecord);
  const projectBucket = openBucket(bus, "push_projects", ProjectRecord);

  const projectOf = (id: ProjectId): Project => {
    const found = projects.get(id);
    if (found === undefined) throw notFound("project-not-found", "id");
    return found;
  };
  const limits = new Map<string, OwnLimits>();
  const saveSettings = async (project: Project): Promise<void> => {
    projects.set(project.id, project);
    const record = {
      limits: limits.get(project.id) ?? {},
      id: project.id,
      openRegistration: project.open_registration,
      protectedMetadata: project.protected_metadata,
    };
    await projectBucket.put(projectSettingsKey(project.id), record);
  };
  const saveToken = async (projectId: ProjectId, hash: string, value: ProjectToken): Promise<void> => {
    tokens.set(value.id, { projectId, value, hash });
    const { id, scopes, expires_at: expiresAt } = value;
    await tokenBucket.put(tokenKey(hash), { id, projectId, scopes, ...(expiresAt === undefined ? {} : { expiresAt }) });
  };

  serve(projectRequests.create, async ({ projectId, name, key, tokenId, tokenHash, ...settings }) => {
    const known = projects.get(projectId);
    if (known !== undefined) return { project: known, created: false };
    const { openRegistration, protectedMetadata = [] } = settings;
    const project = {
      id: projectId,
      ...(key && { key }),
      name,
      open_registration: openRegistration,
      protected_metadata: protectedMetadata,
      receipts: false,
      default_time_zone: "UTC",
      created_at: at(),
    };
    await saveSettings(project);
    if (tokenId && tokenHash)
      await saveToken(projectId, tokenHash, {
        id: tokenId,
        name: "first",
        scopes: [...defaultScopes],
        created_at: at(),
      });
    return { project, created: true };
  });
  serve(projectRequests.list, ({ page, only, key }) =>
    pageOf(
      [...projects.values()].filter((one) => (only?.includes(one.id) ?? true) && (key ?? one.key) === one.key),
      page,
    ),
  );
  serve(projectRequests.setKey, async ({ projectId, key }) => {
    await saveSettings({ ...projectOf(projectId), key });
    return projectOf(projectId);
  });
  serve(projectRequests.get, ({ projectId }) => projectOf(projectId));
  serve(projectRequests.deviceQuota, ({ projectId }) => {
    projectOf(projectId);
    return { devices: 3, limit: 10_000_000 };
  });
  serve(projectRequests.change, async ({ projectId, name, openRegistration, protectedMetadata, receipts }) => {
    const project = { ...projectOf(projectId) };
    if (receipts !== undefined) project.receipts = receipts;
    if (name !== undefined) project.name = name;
    if (openRegistration !== undefined) project.open_registration = openRegistration;
    if (protectedMetadata !== undefined) project.protected_metadata = protectedMetadata;
    await saveSettings(project);
    return project;
  });
  const pauseOf = (
    of: ProjectPause["of"],
    { until, ...pause }: z.output<typeof projectRequests.pauseAll.request>,
  ): ProjectPause => {
    const end = until === undefined ? undefined : new Date(until);
    if (end && end <= new Date()) throw new HeraldError("validation-failed", "until: must be in the future");
    return { at: at(), of, ...pause, ...(end && { until: end.toISOString() }) };
  };
  serve(projectRequests.pause, async ({ projectId, ...pause }) => {
    await saveSettings({ ...projectOf(projectId), paused: pauseOf("project", pause) });
    return projectOf(projectId);
  });
  serve(projectRequests.resume, async ({ projectId }) => {
    const { paused: _, ...project } = projectOf(projectId);
    await saveSettings(project);
    return project;
  });
  let installation: Installation = {};
  serve(projectRequests.pauseAll, (pause) => {
    installation = { paused: pauseOf("installation", pause) };
    return installation;
  });
  serve(projectRequests.resumeAll, () => {
    installation = {};
    return installation;
  });
  serve(projectRequests.installation, () => installation);
  serve(projectRequests.changeLimits, async ({ projectId, limits: change }) => {
    const project = projectOf(projectId);
    const all = Object.entries({ ...limits.get(projectId), ...change }).filter(([, limit]) => limit !== null);
    limits.set(projectId, Object.fromEntries(all));
    await saveSettings(project);
    return { limits: Object.fromEntries(all) };
  });
  serve(projectRequests.delete, async ({ projectId }) => {
    projectOf(projectId);
    projects.delete(projectId);
    await projectBucket.delete(projectSettingsKey(projectId));
    for (const { projectId: owner, hash } of tokens.values()) if (owner === projectId) await tokenBucket.delete(hash);
    return {};
  });
  serve(tokenRequests.create, async ({ projectId, tokenId, tokenHash, name, scopes, expiresAt }) => {
    projectOf(projectId);
    const expires = expiresAt === undefined ? {} : { expires_at: expiresAt };
    const token = { id: tokenId, name, scopes, ...expires, created_at: at() };
    await saveToken(projectId, tokenHash, token);
    return token;
  });
  serve(tokenRequests.list, ({ projectId, page }) => pageOf(rows(tokens, projectOf(projectId).id), page));
  serve(tokenRequests.revoke, async ({ projectId, tokenId }) => {
    projectOf(projectId);
    owned(tokens, { projectId }, tokenId, "token-not-found");
    await tokenBucket.delete(tokens.get(tokenId)?.hash ?? "");
    tokens.delete(tokenId);
    return {};
  });

  const news: DeclaredKind = { kind: "news", title: "News", on_by_default: true, critical: false };
  const kinds = new Map<string, readonly DeclaredKind[]>();
  const kindsOf = (projectId: ProjectId) => kinds.get(projectOf(projectId).id) ?? [news];
  const others = (projectId: ProjectId, kind: string) => kindsOf(projectId).filter((one) => one.kind !== kind);
  const declared = (projectId: ProjectId, kind: string): DeclaredKind => {
    const found = kindsOf(projectId).find((one) => one.kind === kind);
    if (found === undefined) throw notFound("kind-not-found", "kind");
    return found;
  };
  serve(kindRequests.put, ({ projectId, kind }) => {
    const created = others(projectId, kind.kind).length === kindsOf(projectId).length;
    kinds.set(projectId, [...others(projectId, kind.kind), kind]);
    return { created };
  });
  serve(kindRequests.get, ({ projectId, kind }) => declared(projectId, kind));
  serve(kindRequests.list, ({ projectId, page }) =>
    pageOf(
      kindsOf(projectId).map((one) => ({ ...one, id: one.kind })),
      page,
    ),
  );
  serve(kindRequests.delete, ({ projectId, kind }) => {
    declared(projectId, kind);
    kinds.set(projectId, others(projectId, kind));
    return {};
  });

  const identityKeys = new Map<string, Owned<IdentityKey>>();
  serve(identityKeyRequests.create, ({ projectId, keyId, publicKey }) => {
    projectOf(projectId);
    const known = identityKeys.get(keyId)?.value;
    const key = known ?? {
      id: keyId,
      algorithm: publicKey ? ("ES256" as const) : ("HS256" as const),
      created_at: at(),
    };
    identityKeys.set(keyId, { projectId, value: key });
    return { key, ...(publicKey === undefined && { secret: newIdentitySecret() }) };
  });
  serve(identityKeyRequests.list, ({ projectId, page }) => pageOf(rows(identityKeys, projectOf(projectId).id), page));
  serve(identityKeyRequests.delete, ({ projectId, keyId }) => {
    projectOf(projectId);
    identityKeys.delete(owned(identityKeys, { projectId }, keyId, "identity-key-not-found").value.id);
    return {};
  });

  return { tokenBucket, projectBucket };
};
