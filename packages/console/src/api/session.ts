import { Herald, HeraldAdmin, HeraldError } from "@herald/client";

/** Who is signed in. */
export type Session = {
  readonly name: string;
  readonly role: "viewer" | "operator" | "admin";
  readonly expiresAt?: string | undefined;
};

export type SignInWith = { readonly token: string } | { readonly code: string };

type SessionAnswer = {
  readonly operator: { readonly name: string; readonly role: Session["role"] };
  readonly csrf_token?: string;
  readonly expires_at?: string;
};

const sessions = "/admin/v1/sessions";

/** In this page's memory alone. The session's secret is in a cookie that no script can read. */
let csrfToken = "";
/** Only where the gateway has no sessions. */
let operatorToken = "";
const projectTokens = new Map<string, Promise<string>>();

const accepted = async (response: Response): Promise<Session> => {
  const text = await response.text();
  if (!response.ok) {
    const problem = text.startsWith("{") ? JSON.parse(text) : {};
    const errors: string[] = problem.errors ?? [`answered ${response.status}`];
    throw new HeraldError(problem.type?.split("#")[1] ?? "unexpected-answer", errors.join("; "), {
      status: response.status,
      errors,
      requestId: response.headers.get("x-request-id") ?? undefined,
    });
  }
  const { operator, csrf_token = "", expires_at } = JSON.parse(text).data as SessionAnswer;
  csrfToken = csrf_token;
  return { name: operator.name, role: operator.role, expiresAt: expires_at };
};

/** Exchanges a token or a one-time code for a session cookie. */
export const signIn = async (credential: SignInWith): Promise<Session> => {
  const withToken = "token" in credential;
  const response = await fetch(sessions, {
    method: "POST",
    headers: { "content-type": "application/json", ...(withToken && { authorization: `Bearer ${credential.token}` }) },
    body: JSON.stringify(withToken ? {} : { code: credential.code }),
  });
  if (response.status !== 404 || !withToken) return accepted(response);
  await new HeraldAdmin({ url: location.origin, token: credential.token, maxRetries: 1 }).projects.list().page();
  operatorToken = credential.token;
  return { name: "root", role: "admin" };
};

/** The session of this browser's cookie, if there is one. */
export const currentSession = async (): Promise<Session | undefined> => {
  const response = await fetch(`${sessions}/current`);
  return response.status === 401 || response.status === 404 ? undefined : accepted(response);
};

export const signOut = async (): Promise<void> => {
  operatorToken = "";
  projectTokens.clear();
  await fetch(`${sessions}/current`, { method: "DELETE", headers: { "herald-csrf": csrfToken } });
  csrfToken = "";
};

/** A project's token for a gateway without sessions. */
const projectToken = (projectId: string): Promise<string> => {
  const known = projectTokens.get(projectId);
  if (known) return known;
  const expires = new Date(Date.now() + 28_800_000).toISOString();
  const made = createAdmin()
    .tokens.create(projectId, { name: "console", expires_at: expires })
    .then(({ token = "" }) => token);
  projectTokens.set(projectId, made);
  return made;
};

/** Requests carry the cookie, the CSRF token and the project instead of a token. */
const sessionFetch =
  (projectId?: string): typeof fetch =>
  async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.delete("authorization");
    if (operatorToken !== "")
      headers.set("authorization", `Bearer ${projectId ? await projectToken(projectId) : operatorToken}`);
    else if (csrfToken !== "") headers.set("herald-csrf", csrfToken);
    if (projectId !== undefined && operatorToken === "") headers.set("herald-project", projectId);
    return fetch(input, { ...init, headers, credentials: "same-origin" });
  };

/** The client sends a token always; `sessionFetch` takes it off. */
const options = { url: location.origin, token: "session", maxRetries: 1, timeoutMs: 20_000 };

export const createAdmin = () => new HeraldAdmin({ ...options, fetch: sessionFetch() });

export const createHerald = (projectId: string) => new Herald({ ...options, fetch: sessionFetch(projectId) });
