import { type AuditCheck, ListAudit, VerifyAudit } from "@herald/contracts";
import type { Serve } from "./rows.ts";

/** Registry's audit rows: none. Registry's own tests cover them. */
export const serveAudit = (serve: Serve) => {
  serve(ListAudit, () => ({ data: [], next: null }));
  serve(VerifyAudit, (): AuditCheck => ({ valid: true, checked: 0, head: null, next: null }));
};
