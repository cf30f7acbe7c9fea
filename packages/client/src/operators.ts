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
  /** The token, `hop_…`, is shown only once. Absent if the first answer was lost and this one is a replay. */
  create: (operator: NewOperator, options?: PostOptions) =>
    http.create<OperatorWithToken>("operator", "/operators", options, { operator }),
  get: (id: string, options?: CallOptions) => http.get<Operator>(path`/operators/${id}`, options),
  list: (options?: ListOptions) => list<Operator>(http, "/operators", options),
  /** A changed role applies everywhere within a second, also to sessions in progress. */
  update: (id: string, change: OperatorChange, options?: CallOptions) =>
    http.patch<Operator>(path`/operators/${id}`, options, { operator: change }),
  /** The earlier token and its sessions end within a second. */
  rotateToken: (id: string, options?: PostOptions) =>
    http.create<OperatorWithToken>("operator", path`/operators/${id}/token`, options),
  /** The token and its sessions end within a second. */
  delete: (id: string, options?: CallOptions) => http.remove(path`/operators/${id}`, options),
});

export const createSessions = (http: Http) => ({
  /** Signs in by the client's token, or by a sign-in code. The session is a cookie, so this is for pages that Herald serves. */
  create: (code?: string, options?: PostOptions) => http.post<Session>("/sessions", options, { code }),
  /** Who is signed in, and the CSRF token of the session. */
  current: (options?: CallOptions) => http.get<CurrentSession>("/sessions/current", options),
  end: (options?: CallOptions) => http.remove("/sessions/current", options),
  /** A code that signs in once, within 10 minutes. */
  createCode: (options?: PostOptions) => http.post<SignInCode>("/sessions/codes", options),
});

export const createAudit = (http: Http) => ({
  /** What operators did, newest first. */
  list: (options?: ListOptions & AuditFilters) => list<AuditRow>(http, "/audit", options),
  /** The same as NDJSON: a response whose body is one row a line. */
  export: ({ signal, ...filters }: CallOptions & AuditFilters = {}) =>
    http.stream("/audit/export", { signal, query: filters, headers: { accept: "application/x-ndjson" } }),
  /** Checks all rows: whether one was changed, forged or removed. */
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
