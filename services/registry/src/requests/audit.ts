import { defineBatchHandler, handleRequest, type RequestListener } from "@herald/bus";
import {
  AuditRecordedV1,
  type AuditRow,
  anyEvent,
  auditRequests,
  type DataOf,
  eventTypeOf,
  type MessageContract,
  ProviderResumedV1,
} from "@herald/contracts";
import type { Logger } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { AuditDocument, AuditFacts } from "../domain/audit-chain.ts";
import type { AuditStore } from "../stores/audit-store.ts";

const contractOf = (subject: string): MessageContract =>
  (eventTypeOf(subject)?.type === ProviderResumedV1.ceType ? ProviderResumedV1 : AuditRecordedV1) as MessageContract;

type Facts = Omit<AuditFacts, "eventId">;

const operatorFacts = (data: DataOf<typeof AuditRecordedV1>): Facts => ({
  operator: data.operator,
  action: data.action,
  ...(data.target_project_id && { targetProjectId: data.target_project_id }),
  target: data.target,
  address: data.address,
  ...(data.request_id !== undefined && { requestId: data.request_id }),
  ...(data.before !== undefined && { before: JSON.stringify(data.before) }),
  ...(data.after !== undefined && { after: JSON.stringify(data.after) }),
  at: new Date(data.at),
});

/** Herald does what an operator did until then. New settings have the row of the operator who put them. */
const resumptionFacts = ({ project_id, provider, reason, at }: DataOf<typeof ProviderResumedV1>): Facts[] =>
  reason === "new-settings"
    ? []
    : [
        {
          operator: { id: "herald", name: "Herald", role: "member" },
          action: "resumeProvider",
          targetProjectId: project_id,
          target: `/admin/v1/projects/${project_id}/providers/${provider}`,
          address: "",
          before: JSON.stringify({ status: "paused" }),
          after: JSON.stringify({ status: "active" }),
          at: new Date(at),
        },
      ];

/** Appends the actions of operators, and Herald's own, to the chain of audit rows. One batch at a time, because each row has the hash of the row before. */
export const recordAudit = (audit: AuditStore, log: Logger) =>
  defineBatchHandler({
    durable: "registry-record-audit", // renaming a durable replays its stream
    message: anyEvent,
    contractOf,
    // A batch costs four commands, like a single row, so that no operator's flood delays the rows of others.
    size: 500,
    waitMs: 50, // of the second within which a row appears
    concurrency: 1,
    async handle(deliveries) {
      const appended = await audit.append(
        deliveries.flatMap(({ id, subject, data }) =>
          (contractOf(subject) === ProviderResumedV1
            ? resumptionFacts(data as DataOf<typeof ProviderResumedV1>)
            : [operatorFacts(data as DataOf<typeof AuditRecordedV1>)]
          ).map((facts) => ({ eventId: id, ...facts })),
        ),
      );
      // Logs are stored elsewhere: the logged hashes reveal a chain that was rewritten from some row on.
      for (const row of appended)
        log.info({ sequence: row._id, hash: row.hash, action: row.action }, "audit row recorded");
    },
  });

const stateOf = (text: string | undefined) => (text === undefined ? undefined : JSON.parse(text));

const auditView = (row: AuditDocument): AuditRow => ({
  sequence: row._id,
  event_id: row.eventId,
  operator: row.operator,
  action: row.action,
  ...(row.targetProjectId && { project_id: row.targetProjectId }),
  target: row.target,
  address: row.address,
  ...(row.requestId && { request_id: row.requestId }),
  ...(row.before !== undefined && { before: stateOf(row.before) }),
  ...(row.after !== undefined && { after: stateOf(row.after) }),
  at: row.at.toISOString(),
  previous_hash: row.previousHash,
  hash: row.hash,
});

export const handleAuditRequests = ({ bus, audit }: Pick<Deps, "audit" | "bus">): RequestListener[] => [
  handleRequest(bus, auditRequests.list, async (request) => mapPage(await audit.list(request), auditView)),
  handleRequest(bus, auditRequests.verify, ({ after }) => audit.check(after)),
];
