import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { AuditCheck, AuditRow } from "../http/v1/audit.ts";
import { KeysetRequest, keysetPageOf } from "../http/v1/pagination.ts";
import { OperatorReference } from "../http/v1/sessions.ts";
import { ProjectId } from "../ids.ts";

const time = z.iso.datetime({ offset: true });

/** Newest first. */
export const ListAudit = defineRequest(
  "registry.audit.list",
  z.object({
    page: KeysetRequest,
    operator: OperatorReference.optional(),
    action: z.string().optional(),
    targetProjectId: ProjectId.optional(),
    createdAfter: time.optional(),
    createdBefore: time.optional(),
  }),
  keysetPageOf(AuditRow),
);
export type ListAuditRequest = z.infer<typeof ListAudit.request>;

/** Checks the next rows of the chain. */
export const VerifyAudit = defineRequest(
  "registry.audit.verify",
  z.object({ after: z.number().int().min(0) }),
  AuditCheck,
  () => true,
);
