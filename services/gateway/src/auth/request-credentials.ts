import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { operatorHeaders, sessionCookieName } from "@herald/contracts";

/** The credentials and origin of a request. */
export type RequestCredentials = {
  readonly authorization?: string | undefined;
  /** The secret of the session cookie. */
  readonly session?: string | undefined;
  readonly csrfToken?: string | undefined;
  /** The project that an operator acts for under `/api/v1`. */
  readonly project?: string | undefined;
  /** The project that a request under `/admin/v1` is about. */
  readonly target?: string | undefined;
  /** The request changes something. */
  readonly changes?: boolean;
  /** The request came through a port that operators do not use. */
  readonly withoutOperators?: boolean;
  /** A page of another origin made the request. */
  readonly fromOtherOrigin?: boolean;
};

const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name.toLowerCase()];
  return value === undefined ? undefined : String(value);
};

export const cookieOf = (header: string | undefined, wanted: string): string | undefined => {
  for (const pair of header?.split(";", 100) ?? []) {
    const [name, value] = pair.split("=", 2);
    if (name?.trim() === wanted) return value?.trim();
  }
  return undefined;
};

/**
 * Whether another origin sent the request, by the headers that browsers add. `SameSite=Strict` keeps the cookie from other sites; this
 * check also keeps it from other ports and subdomains of the same site. Other programs send neither header.
 */
const isFromOtherOrigin = (request: IncomingMessage): boolean => {
  const site = headerOf(request, "sec-fetch-site");
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const origin = headerOf(request, "origin");
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.host;
};

/** The credentials of a request. `secure`: its connection is encrypted, see {@link isSecure}. */
export const credentialsOf = (request: IncomingMessage, secure: boolean): RequestCredentials => {
  const { cookie } = request.headers;
  const session = cookie === undefined ? undefined : cookieOf(cookie, sessionCookieName(secure));
  return {
    authorization: request.headers.authorization,
    project: headerOf(request, operatorHeaders.project),
    fromOtherOrigin: isFromOtherOrigin(request),
    ...(session !== undefined && {
      session,
      csrfToken: headerOf(request, operatorHeaders.csrf),
      changes: request.method !== "GET" && request.method !== "HEAD",
    }),
  };
};

/** Whether the browser's connection is encrypted: its connection to the gateway, or to the outermost trusted proxy. */
export const isSecure = (request: IncomingMessage, proxies: number): boolean => {
  if ((request.socket as Partial<TLSSocket>).encrypted === true) return true;
  const [protocol] = proxies === 0 ? [] : (headerOf(request, "x-forwarded-proto")?.split(",", 1) ?? []);
  return protocol?.trim().toLowerCase() === "https";
};
