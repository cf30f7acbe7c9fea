import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { operatorHeaders, sessionCookie } from "@herald/contracts";

/** What a request proves its caller with. */
export type Credentials = {
  readonly authorization?: string | undefined;
  /** The secret of the session cookie. */
  readonly session?: string | undefined;
  readonly csrfToken?: string | undefined;
  /** The project that an operator acts for. */
  readonly project?: string | undefined;
  /** The request changes something. */
  readonly changes?: boolean;
  /** The request came through a door that operators do not use. */
  readonly withoutOperators?: boolean;
  /** A page of another origin made the request. */
  readonly fromOtherOrigin?: boolean;
};

const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name.toLowerCase()];
  return value === undefined ? undefined : String(value);
};

const cookieOf = (header: string | undefined): string | undefined => {
  for (const pair of header?.split(";", 100) ?? []) {
    const [name, value] = pair.split("=", 2);
    if (name?.trim() === sessionCookie) return value?.trim();
  }
  return undefined;
};

/**
 * Browsers say where a request comes from. `SameSite=Strict` keeps the cookie from other sites; this keeps it from other ports and
 * subdomains of the same site too. Programs other than browsers send neither header.
 */
const isFromOtherOrigin = (request: IncomingMessage): boolean => {
  const site = headerOf(request, "sec-fetch-site");
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const origin = headerOf(request, "origin");
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.host;
};

export const credentialsOf = (request: IncomingMessage): Credentials => {
  const session = cookieOf(request.headers.cookie);
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

/** Whether the browser's connection is encrypted: the gateway's own, or that of its outermost trusted proxy. */
export const isSecure = (request: IncomingMessage, proxies: number): boolean => {
  if ((request.socket as Partial<TLSSocket>).encrypted === true) return true;
  const [protocol] = proxies === 0 ? [] : (headerOf(request, "x-forwarded-proto")?.split(",", 1) ?? []);
  return protocol?.trim().toLowerCase() === "https";
};
