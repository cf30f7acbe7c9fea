import { z } from "zod";
import { ProjectId } from "../../ids.ts";
import { named } from "../../named.ts";
import { Instant, keysetQuery } from "./pagination.ts";
import { AuditedOperator, AuditedReference } from "./sessions.ts";

const Hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ examples: ["5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8" + "8"] });

const State = z.record(z.string(), z.unknown()).nullable().optional();

/** One change by an operator, as stored in the chain of audit rows. */
export const AuditRow = named("AuditRow", {
  sequence: z.number().int().min(1).meta({ description: "1 for the first row; without gaps" }),
  event_id: z.string().meta({ examples: ["0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11"] }),
  operator: AuditedOperator,
  action: z.string().meta({
    description:
      "The operationId of the route; `resumeProvider`: Herald resumed a provider that accepts the credential again",
    examples: ["changeProject"],
  }),
  project_id: ProjectId.optional(),
  target: z.string().meta({ examples: ["/admin/v1/projects/prj_06bq4ghm31tz5d2ns8y7k9w0ac"] }),
  address: z.string().meta({ description: "Empty when Herald itself acts", examples: ["203.0.113.7"] }),
  request_id: z
    .string()
    .optional()
    .meta({ examples: ["0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11"] }),
  before: State.meta({ description: "What was there, without secrets", examples: [{ name: "Shop" }] }),
  after: State.meta({
    description: "The fields that the request set, secrets masked; under `/api/v1` only their names, as `fields`",
    examples: [{ name: "Store" }],
  }),
  at: z.iso.datetime(),
  previous_hash: Hash,
  hash: Hash,
});
export type AuditRow = z.infer<typeof AuditRow>;

/** The filters of `GET /admin/v1/audit`; all optional. */
export const auditFilters = {
  operator: AuditedReference.optional().meta({ description: "Only rows of this operator" }),
  action: z
    .string()
    .regex(/^[A-Za-z]{1,64}$/, "must be an operationId, such as changeProject")
    .optional()
    .meta({ description: "Only rows of this action, named by its operationId", examples: ["changeProject"] }),
  project_id: ProjectId.optional().meta({ description: "Only rows about this project" }),
  created_after: Instant.optional().meta({ description: "Only rows of this time or later" }),
  created_before: Instant.optional().meta({ description: "Only rows before this time" }),
};
export const AuditExportQuery = z.strictObject(auditFilters);
export const AuditQuery = z.strictObject({ ...keysetQuery, ...auditFilters });

/** The query of `GET /admin/v1/audit/verify`. */
export const VerifyAuditQuery = z.strictObject({
  after: z
    .string()
    .regex(/^[0-9]{1,15}$/, "must be the `next` of the last answer")
    .optional()
    .meta({ description: "`next` of the last answer; absent: from the first row" }),
});

/** The result of checking some rows. */
export const AuditCheck = named("AuditCheck", {
  valid: z.boolean(),
  checked: z.number().int().min(0).meta({ description: "Rows that were checked by this request" }),
  problem: z
    .object({ sequence: z.number().int(), detail: z.string() })
    .optional()
    .meta({
      description: "The first row that breaks the chain",
      examples: [{ sequence: 17, detail: "the row was changed: its hash differs" }],
    }),
  head: z.object({ sequence: z.number().int(), hash: Hash }).nullable().meta({
    description: "The last checked row. Keep it elsewhere to prove later that no row before it has changed",
  }),
  next: z.string().nullable().meta({ description: "`after` of the next request; null: all rows are checked" }),
  removed: z
    .object({ sequence: z.number().int(), at: z.iso.datetime() })
    .optional()
    .meta({
      description:
        "The last row that `HERALD_REGISTRY_AUDIT_RETENTION` removed. The chain is checked from the row after it on",
      examples: [{ sequence: 1200, at: "2029-01-31T09:00:00.000Z" }],
    }),
});
export type AuditCheck = z.infer<typeof AuditCheck>;
