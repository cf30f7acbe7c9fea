import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { Project, ProjectKey, ProjectListQuery, ProjectToken, Scope } from "../http/v1/admin.ts";
import { ApprovalRule } from "../http/v1/approval.ts";
import { LimitName, OwnLimits } from "../http/v1/limits.ts";
import { Installation, PauseSends, StoredPause } from "../http/v1/pause.ts";
import { QuietHours } from "../http/v1/quiet-hours.ts";
import { ReceiptShare } from "../http/v1/receipt-fields.ts";
import { OperatorReference } from "../http/v1/sessions.ts";
import { ProjectId, TokenId } from "../ids.ts";
import { SecretHash } from "../secrets.ts";

const project = { projectId: ProjectId };
const done = z.object({});
const resume = StoredPause.pick({ by: true }).shape;
const pause = { ...resume, ...PauseSends.shape };

export const projectRequests = defineRequests("registry.projects", {
  /** The gateway creates the id and the token, so that a repeated request creates the same project. */
  create: oneRequest(
    {
      ...project,
      name: z.string(),
      key: ProjectKey.optional(),
      openRegistration: z.boolean(),
      protectedMetadata: z.array(z.string()).optional(),
      /** Both or none. */
      tokenId: TokenId.optional(),
      tokenHash: SecretHash.optional(),
      createdBy: OperatorReference.optional(),
    },
    z.object({ project: Project, created: z.boolean() }),
  ),
  list: listRequest(
    /** `only`: of these projects. */ { only: z.array(ProjectId).optional() },
    Project,
    ProjectListQuery,
  ),
  /** Throws `project-key-taken`. */
  setKey: oneRequest({ ...project, key: ProjectKey }, Project),
  /** The number of the project's devices, and its limit. */
  deviceQuota: oneRequest(project, z.object({ devices: z.number().int().min(0), limit: z.number().int().min(1) })),
  /** Null restores a default. */
  changeLimits: oneRequest(
    { ...project, limits: z.partialRecord(LimitName, z.number().int().min(0).nullable()) },
    z.object({ limits: OwnLimits }),
  ),
  get: oneRequest(project, Project),
  change: oneRequest(
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
      /** Null: none. Throws `forbidden` for a rule that is looser than the present one, unless `mayLoosen`. */
      approval: ApprovalRule.nullable().optional(),
      mayLoosen: z.boolean().optional(),
    },
    Project,
  ),
  /** Dispatch knows it, or learns it within milliseconds. A pause of a paused project replaces the earlier one. */
  pause: oneRequest({ ...project, ...pause }, Project),
  resume: oneRequest({ ...project, ...resume }, Project),
  /** The same for all projects. */
  pauseAll: oneRequest(pause, Installation),
  resumeAll: oneRequest(resume, Installation),
  installation: oneRequest({}, Installation),
  delete: oneRequest(project, done),
});

export const tokenRequests = defineRequests("registry.tokens", {
  create: oneRequest(
    {
      ...project,
      tokenId: TokenId,
      tokenHash: SecretHash,
      name: z.string(),
      scopes: z.array(Scope),
      expiresAt: z.iso.datetime().optional(),
      createdBy: OperatorReference.optional(),
    },
    ProjectToken,
  ),
  list: listRequest(project, ProjectToken),
  revoke: oneRequest({ ...project, tokenId: TokenId }, done),
});
