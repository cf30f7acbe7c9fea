import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { AuditCheck, AuditRow } from "../http/v1/audit.ts";
import { Operator, OperatorRole, ProjectGrant } from "../http/v1/operators.ts";
import { KeysetRequest, keysetPageOf, timeRange } from "../http/v1/pagination.ts";
import { AuditedReference } from "../http/v1/sessions.ts";
import { OperatorId, ProjectId } from "../ids.ts";
import { SecretHash } from "../secrets.ts";

const operator = { operatorId: OperatorId };

export const operatorRequests = defineRequests("registry.operators", {
  /** The gateway creates the id and the token. A repeated request replaces the token that no caller received. */
  create: oneRequest(
    { ...operator, name: z.string(), role: OperatorRole, projects: z.array(ProjectGrant), tokenHash: SecretHash },
    Operator,
  ),
  list: listRequest({}, Operator),
  get: oneRequest(operator, Operator),
  change: oneRequest(
    {
      ...operator,
      name: z.string().optional(),
      role: OperatorRole.optional(),
      projects: z.array(ProjectGrant).optional(),
    },
    Operator,
  ),
  /**
   * Signs in a person whom an identity provider names, and stores what it says of them. The first sign-in creates an operator, a
   * member. Fails with sign-in-not-permitted if the person has no group, role or grant, unless `everyone` may sign in.
   */
  signIn: oneRequest(
    {
      issuer: z.string(),
      subject: z.string().min(1),
      name: z.string(),
      email: z.string().optional(),
      groups: z.array(z.string()),
      everyone: z.boolean(),
    },
    Operator,
  ),
  /** Ends the sessions and sign-in codes that exist. The token stays valid. */
  signOut: oneRequest(operator, Operator),
  /** Replaces the token. The earlier token and its sessions become invalid. */
  rotate: oneRequest({ ...operator, tokenHash: SecretHash }, Operator),
  delete: oneRequest(operator, z.object({})),
});

export const auditRequests = defineRequests("registry.audit", {
  /** Lists audit rows, newest first. */
  list: oneRequest(
    {
      page: KeysetRequest,
      operator: AuditedReference.optional(),
      action: z.string().optional(),
      targetProjectId: ProjectId.optional(),
      ...timeRange,
    },
    keysetPageOf(AuditRow),
  ),
  /** Checks the next rows of the chain. */
  verify: oneRequest({ after: z.number().int().min(0) }, AuditCheck, () => true),
});

export type ListAuditRequest = z.infer<typeof auditRequests.list.request>;
