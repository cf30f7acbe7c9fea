import { type CurrentSession, Herald, HeraldAdmin, HeraldError, type SignedInOperator } from "@herald/client";

export type SignInWith = { readonly token: string } | { readonly code: string };

/** Only in this page's memory. The session's own secret is in a cookie that no script can read. */
let csrfToken = "";

/** Reads the CSRF token at each request: a new session has a new token. */
const withCsrfToken: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  if (csrfToken !== "") headers.set("herald-csrf", csrfToken);
  try {
    return await fetch(input, { ...init, headers, credentials: "same-origin" });
  } catch (error) {
    if (!init?.signal?.aborted) connection.dispatchEvent(new Event("lost"));
    throw error;
  }
};

/** Emits `lost` when a request or the stream of events does not reach the gateway, and `ended` when the session ends. */
export const connection = new EventTarget();

/** The page shows the reason and the time of a longer wait at once, instead of seeming to hang. */
const maxWaitMs = 1_500;

const options = {
  url: location.origin,
  session: {},
  fetch: withCsrfToken,
  maxRetries: 1,
  maxWaitMs,
  timeoutMs: 20_000,
};

export const admin = new HeraldAdmin(options);

export const projectClient = (project: string) => new Herald({ ...options, project });

const impatient = new HeraldAdmin({ ...options, maxRetries: 0, timeoutMs: 8_000 });

/** Throws if Herald does not answer soon. */
export const probe = () => impatient.sessions.current();

const begun = ({ operator, csrf_token = "" }: CurrentSession): SignedInOperator => {
  csrfToken = csrf_token;
  return operator;
};

/** Exchanges a token or a one-time code for a session cookie. */
export const signIn = async (credential: SignInWith): Promise<SignedInOperator> => {
  if ("code" in credential) return begun(await admin.sessions.create(credential.code));
  const { url, maxRetries, timeoutMs } = options;
  return begun(await new HeraldAdmin({ url, token: credential.token, maxRetries, timeoutMs }).sessions.create());
};

/** The session of this browser's cookie, if there is one. */
export const currentSession = async (): Promise<SignedInOperator | undefined> => {
  try {
    return begun(await admin.sessions.current());
  } catch (error) {
    if (error instanceof HeraldError && error.status === 401) return undefined;
    throw error;
  }
};

/** Resolves to the address that ends the identity provider's session too, if there is one. */
export const signOut = async (): Promise<string | undefined> => {
  const ended = await admin.sessions.end();
  csrfToken = "";
  return ended?.logout_url;
};

/** Whether people can sign in by their company's identity provider. */
export const hasIdentityProvider = async (): Promise<boolean> => {
  const answer = await fetch("/admin/v1/sign-in");
  return answer.ok && ((await answer.json()) as { readonly data: { readonly oidc: boolean } }).data.oidc;
};
