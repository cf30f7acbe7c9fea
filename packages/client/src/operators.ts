import type {
  AuditCheck,
  AuditFilters,
  AuditRow,
  CurrentSession,
  NewOperator,
  Operator,
  OperatorChange,
  Session,
  SignInCode,
} from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list } from "./list.ts";

type OperatorWithToken = { readonly operator: Operator; readonly token?: string | undefined };

export const createOperators = (http: Http) => ({
  /** The token, `hop_…`, is shown only once. It is absent if the first answer was lost and this one is a replay. */
  create: (operator: NewOperator, options?: PostOptions) =>
    http.create<OperatorWithToken>("operator", "/operators", options, { operator }),
  get: (id: string, options?: CallOptions) => http.get<Operator>(path`/operators/${id}`, options),
  list: (options?: ListOptions) => list<Operator>(http, "/operators", options),
  /** Changed roles and grants apply everywhere within a second, also to sessions in progress. `projects` replaces all grants. */
  update: (id: string, change: OperatorChange, options?: CallOptions) =>
    http.patch<Operator>(path`/operators/${id}`, options, { operator: change }),
  /** The old token and its sessions stop working within a second. */
  rotateToken: (id: string, options?: PostOptions) =>
    http.create<OperatorWithToken>("operator", path`/operators/${id}/token`, options),
  /** The operator's sessions and sign-in codes end within a second. The token stays valid. */
  signOut: (id: string, options?: PostOptions) => http.post<void>(path`/operators/${id}/sign-out`, options),
  /** The operator's token and sessions stop working within a second. */
  delete: (id: string, options?: CallOptions) => http.remove(path`/operators/${id}`, options),
});

export const createSessions = (http: Http) => ({
  /** Signs in with the client's token or with a sign-in code. Sets the session as a cookie, so it is only for pages that Herald serves. */
  create: (code?: string, options?: PostOptions) => http.post<Session>("/sessions", options, { code }),
  /** The signed-in operator, and the CSRF token of the session. */
  current: (options?: CallOptions) => http.get<CurrentSession>("/sessions/current", options),
  end: (options?: CallOptions) => http.remove("/sessions/current", options),
  /** Creates a sign-in code that works once, within 10 minutes. */
  createCode: (options?: PostOptions) => http.post<SignInCode>("/sessions/codes", options),
});

export const createAudit = (http: Http) => ({
  /** The actions of operators, newest first. */
  list: (options?: ListOptions & AuditFilters) => list<AuditRow>(http, "/audit", options),
  /** The audit log as NDJSON: a response whose body has one row per line. */
  export: ({ signal, ...filters }: CallOptions & AuditFilters = {}) =>
    http.stream("/audit/export", { signal, query: filters, headers: { accept: "application/x-ndjson" } }),
  /** Checks whether any row was changed, forged or removed. */
  check: async (options?: CallOptions): Promise<AuditCheck> => {
    let checked = 0;
    for (let after: string | undefined; ; ) {
      const found: AuditCheck = await http.get("/audit/verify", { ...options, query: { after } });
      checked += found.checked;
      if (!found.valid || !found.next) return { ...found, checked };
      after = found.next;
    }
  },
});
