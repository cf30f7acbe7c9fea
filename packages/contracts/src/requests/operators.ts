import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { AuditCheck, AuditRow } from "../http/v1/audit.ts";
import { Operator, OperatorRole, ProjectGrant } from "../http/v1/operators.ts";
import { KeysetRequest, keysetPageOf, timeRange } from "../http/v1/pagination.ts";
import { AuditedReference } from "../http/v1/sessions.ts";
import { OperatorId, ProjectId } from "../ids.ts";
import { SecretHash } from "../secrets.ts";

const operator = { operatorId: OperatorId };

/** The gateway creates the id and the token. A repeated request replaces the token that no caller received. */
export const CreateOperatorRequest = defineRequest(
  "registry.operators.create",
  { ...operator, name: z.string(), role: OperatorRole, projects: z.array(ProjectGrant), tokenHash: SecretHash },
  Operator,
);
export const ListOperators = defineList("registry.operators.list", {}, Operator);
export const GetOperator = defineRequest("registry.operators.get", operator, Operator);
export const ChangeOperatorRequest = defineRequest(
  "registry.operators.change",
  {
    ...operator,
    name: z.string().optional(),
    role: OperatorRole.optional(),
    projects: z.array(ProjectGrant).optional(),
  },
  Operator,
);
/**
 * Signs in a person whom an identity provider names, and stores what it says of them. The first sign-in creates an operator, a
 * member. Fails with sign-in-not-permitted if the person has no group, role or grant, unless `everyone` may sign in.
 */
export const SignInOperator = defineRequest(
  "registry.operators.sign-in",
  {
    issuer: z.string(),
    subject: z.string().min(1),
    name: z.string(),
    email: z.string().optional(),
    groups: z.array(z.string()),
    everyone: z.boolean(),
  },
  Operator,
);
/** Ends the sessions and sign-in codes that exist. The token stays valid. */
export const SignOutOperator = defineRequest("registry.operators.sign-out", operator, Operator);
/** Replaces the token. The earlier token and its sessions become invalid. */
export const RotateOperatorToken = defineRequest(
  "registry.operators.rotate",
  { ...operator, tokenHash: SecretHash },
  Operator,
);
export const DeleteOperator = defineRequest("registry.operators.delete", operator, z.object({}));

/** Lists audit rows, newest first. */
export const ListAudit = defineRequest(
  "registry.audit.list",
  {
    page: KeysetRequest,
    operator: AuditedReference.optional(),
    action: z.string().optional(),
    targetProjectId: ProjectId.optional(),
    ...timeRange,
  },
  keysetPageOf(AuditRow),
);
export type ListAuditRequest = z.infer<typeof ListAudit.request>;

/** Checks the next rows of the chain. */
export const VerifyAudit = defineRequest(
  "registry.audit.verify",
  { after: z.number().int().min(0) },
  AuditCheck,
  () => true,
);
