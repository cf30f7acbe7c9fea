import { type AuditCheck, auditRequests } from "@herald/contracts";
import type { Serve } from "./rows.ts";

/** Registry's audit rows: none. Registry's own tests cover them. */
export const serveAudit = (serve: Serve) => {
  serve(auditRequests.list, () => ({ data: [], next: null }));
  serve(auditRequests.verify, (): AuditCheck => ({ valid: true, checked: 0, head: null, next: null }));
};
