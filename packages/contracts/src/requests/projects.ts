import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { Project, ProjectKey, ProjectListQuery, ProjectToken, Scope } from "../http/v1/admin.ts";
import { LimitName, OwnLimits } from "../http/v1/limits.ts";
import { QuietHours } from "../http/v1/quiet-hours.ts";
import { ReceiptShare } from "../http/v1/receipt-fields.ts";
import { ProjectId, TokenId } from "../ids.ts";
import { SecretHash } from "../secrets.ts";

const project = { projectId: ProjectId };
const done = z.object({});

export const CreateProjectRequest = defineRequest(
  "registry.projects.create" /** The gateway creates the id and the token, so that a repeated request creates the same project. */,
  {
    ...project,
    name: z.string(),
    key: ProjectKey.optional(),
    openRegistration: z.boolean(),
    protectedMetadata: z.array(z.string()).optional(),
    /** Both or none. */
    tokenId: TokenId.optional(),
    tokenHash: SecretHash.optional(),
  },
  z.object({ project: Project, created: z.boolean() }),
);
export const ListProjects = defineList(
  "registry.projects.list",
  /** `only`: of these projects. */
  { only: z.array(ProjectId).optional() },
  Project,
  ProjectListQuery,
);
/** Throws `project-key-taken`. */
export const SetProjectKeyRequest = defineRequest(
  "registry.projects.set-key",
  { ...project, key: ProjectKey },
  Project,
);
/** The number of the project's devices, and its limit. */
export const GetDeviceQuota = defineRequest(
  "registry.projects.device-quota",
  project,
  z.object({ devices: z.number().int().min(0), limit: z.number().int().min(1) }),
);
/** Null restores a default. */
export const ChangeLimitsRequest = defineRequest(
  "registry.projects.change-limits",
  { ...project, limits: z.partialRecord(LimitName, z.number().int().min(0).nullable()) },
  z.object({ limits: OwnLimits }),
);
export const GetProject = defineRequest("registry.projects.get", project, Project);
export const ChangeProjectRequest = defineRequest(
  "registry.projects.change",
  {
    ...project,
    name: z.string().optional(),
    openRegistration: z.boolean().optional(),
    protectedMetadata: z.array(z.string()).optional(),
    /** Null: off. */
    staleAfter: z.string().nullable().optional(),
    receipts: ReceiptShare.optional(),
    /** Null: none. */
    quietHours: QuietHours.nullable().optional(),
    defaultTimeZone: z.string().optional(),
  },
  Project,
);
export const DeleteProject = defineRequest("registry.projects.delete", project, done);

export const CreateTokenRequest = defineRequest(
  "registry.tokens.create",
  {
    ...project,
    tokenId: TokenId,
    tokenHash: SecretHash,
    name: z.string(),
    scopes: z.array(Scope),
    expiresAt: z.iso.datetime().optional(),
  },
  ProjectToken,
);
export const ListTokens = defineList("registry.tokens.list", project, ProjectToken);
export const RevokeToken = defineRequest("registry.tokens.revoke", { ...project, tokenId: TokenId }, done);
