import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import {
  AuthenticateDevice,
  AuthenticateUser,
  isOperatorToken,
  isSessionSecret,
  type OperatorRole,
  operatorHeaders,
  ProjectId,
  parseDeviceCredential,
  roleIncludes,
  type Scope,
  sessionCookieName,
  UserToken,
} from "@herald/contracts";
import { HeraldError, hasCode, notFound } from "@herald/kit";
import type { SendRequest } from "../bus-connection.ts";
import {
  type Access,
  type ActingOperator,
  type Caller,
  type CallerKind,
  invalidCredential,
  type OperatorSession,
  roleIn,
  roleOf,
  scopesOf,
} from "./caller.ts";
import type { OperatorDirectory, ProjectDirectory, TokenDirectory } from "./directories.ts";
import type { RateLimits } from "./rate-limits.ts";
import type { Sessions } from "./sessions.ts";

type Deps = {
  readonly tokens: TokenDirectory;
  readonly operators: OperatorDirectory;
  readonly sessions: Sessions;
  readonly projects: Pick<ProjectDirectory, "settings">;
  readonly sendRequest: SendRequest;
  readonly limits: RateLimits;
};

const wanted: Record<CallerKind, string> = {
  user: "a user token",
  project: "a project token (hpt_…)",
  device: "a device credential (hdc_…)",
  client: "`project_id` and `identifier` in the body, without this header",
  operator: "an operator token (hop_…)",
};

const names = (access: Access): string => access.by.map((kind) => wanted[kind]).join(" or ");

const forbidden = (message: string, headers?: Readonly<Record<string, string>>): HeraldError =>
  new HeraldError("forbidden", `authorization: ${message}`, { headers });

const quoted = (scopes: readonly Scope[]): string => scopes.map((scope) => `\`${scope}\``).join(", ");

/** RFC 6750: a bearer token is visible ASCII; ours have at most 140 characters, and user tokens as many as an app's backend likes. */
const bearer = /^Bearer +([\x21-\x7e]{1,4096}) *$/i;

/** The project that a user token names as its audience, before the token is verified. Undefined: it is no user token. */
const audienceOf = (credential: string): ProjectId | undefined => {
  if (!UserToken.safeParse(credential).success) return undefined;
  try {
    const { aud } = JSON.parse(Buffer.from(credential.split(".")[1] ?? "", "base64url").toString());
    return ProjectId.safeParse(Array.isArray(aud) ? aud[0] : aud).data;
  } catch {
    return undefined;
  }
};

/** Authenticates the caller. Counts refusals, never valid credentials, against the address. */
export const createAuthenticate = ({ tokens, operators, sessions, projects, sendRequest, limits }: Deps) => {
  const permit = permitOperator(projects);

  /** The operator of a session, which is sent in the way for which it was made. */
  const verifySession = async (
    way: "cookie" | "authorization",
    secret: string,
    access: Access,
    sent: RequestCredentials,
    address: string,
  ): Promise<Caller> => {
    const session = await sessions.find(secret, address);
    const isOther = (session?.bearer === true) !== (way === "authorization");
    const operator = session && !isOther ? await operators.findByHash(session.operatorTokenHash, address) : undefined;
    if (session === undefined || operator === undefined || session.signedOutAt !== operator.signedOutAt) {
      await limits.countFailure(address);
      throw invalidCredential(`${way}: the session has ended; sign in again`);
    }
    // Other sites' pages cannot send the header.
    if (way === "cookie") checkSessionUse(session, sent);
    return permit({ operator, session }, access, sent);
  };

  const verifyUser = async (projectId: ProjectId, userToken: string, address: string): Promise<Caller> => {
    try {
      const { userId } = await limits.countWhileVerifying(address, () =>
        sendRequest(AuthenticateUser, { projectId, userToken }),
      );
      return { kind: "user", projectId, userId };
    } catch (error) {
      if (hasCode(error, "user-token-invalid")) await limits.countFailure(address);
      throw error;
    }
  };

  /** The caller of a credential; undefined when the credential is invalid. */
  const verifyCredential = async (
    credential: string,
    access: Access,
    sent: RequestCredentials,
    address: string,
  ): Promise<Caller | undefined> => {
    const byOperator = access.by.includes("operator");
    if (isSessionSecret(credential)) return verifySession("authorization", credential, access, sent, address);
    if (byOperator || sent.project !== undefined || isOperatorToken(credential)) {
      const operator = await operators.find(credential, address);
      if (operator !== undefined || byOperator) return operator && permit({ operator }, access, sent);
    }
    const audience = access.by.includes("user") ? audienceOf(credential) : undefined;
    if (audience !== undefined) return verifyUser(audience, credential, address);
    const device = parseDeviceCredential(credential);
    if (device === undefined) {
      const record = await tokens.find(credential, address);
      return record && { kind: "project", projectId: record.projectId, tokenId: record.id, scopes: record.scopes };
    }
    if (!access.by.includes("device")) throw forbidden(`a device credential cannot do this; send ${names(access)}`);
    // Verification is a request to registry, so rate limits stop guessing clients first.
    const { projectId, deviceId, hash: credentialHash } = device;
    const { valid } = await limits.countWhileVerifying(address, () =>
      sendRequest(AuthenticateDevice, { projectId, deviceId, credentialHash }),
    );
    return valid ? { kind: "device", projectId, deviceId } : undefined;
  };

  /** Apps send a stale credential when they register again, so an invalid one counts as a failure but is not refused. */
  const deviceOrClient = async (access: Access, sent: RequestCredentials, address: string): Promise<Caller> => {
    const credential = bearer.exec(sent.authorization ?? "")?.[1] ?? "";
    if (!parseDeviceCredential(credential)) return { kind: "client" };
    const caller = await verifyCredential(credential, { ...access, by: ["device"] }, sent, address);
    if (caller) return caller;
    await limits.countFailure(address);
    return { kind: "client" };
  };

  return async (access: Access, sent: RequestCredentials, address: string): Promise<Caller> => {
    const { authorization, session } = sent;
    if (access.orDevice) return deviceOrClient(access, sent, address);
    // Another site's form could sign its visitor in as the attacker, who would then read the visitor's input.
    if (access.signsIn && sent.fromOtherOrigin)
      throw new HeraldError("forbidden", "origin: pages of another origin may not sign in");
    const isClient = access.by.includes("client");
    if (access.by.every((kind) => kind === "client")) return { kind: "client" };
    // If the body may identify the client, a browser's cookie counts only when the request names a project.
    const usesSession = !sent.withoutOperators && !access.signsIn && (!isClient || sent.project !== undefined);
    if (authorization === undefined && session !== undefined && usesSession)
      return verifySession("cookie", session, access, sent, address);
    if (authorization === undefined && isClient) return { kind: "client" };
    if (authorization === undefined) {
      await limits.countFailure(address);
      throw new HeraldError("unauthenticated", `authorization: send \`Bearer\` and ${names(access)}`, {
        headers: { "www-authenticate": 'Bearer realm="herald"' },
      });
    }
    const credential = bearer.exec(authorization)?.[1];
    const caller = credential === undefined ? undefined : await verifyCredential(credential, access, sent, address);
    if (caller === undefined) {
      await limits.countFailure(address);
      throw invalidCredential(`authorization: the credential is invalid; send \`Bearer\` and ${names(access)}`);
    }
    if (!access.by.includes(caller.kind)) throw forbidden(`this credential cannot do this; send ${names(access)}`);
    if (caller.kind !== "project") return caller;
    const { scopes = [] } = access;
    const missing = scopes.filter((scope) => !caller.scopes.includes(scope));
    if (missing.length === 0) return caller;
    throw forbidden(`the project token lacks the scope ${quoted(missing)}; it has ${quoted(caller.scopes)}`, {
      "www-authenticate": `Bearer realm="herald", error="insufficient_scope", scope="${scopes.join(" ")}"`,
    });
  };
};

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
  const session = cookieOf(request.headers.cookie, sessionCookieName(secure));
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

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** A page of another origin must not use the cookie, and cannot read the CSRF token. */
const checkSessionUse = ({ csrfToken }: OperatorSession, sent: RequestCredentials): void => {
  if (sent.fromOtherOrigin)
    throw new HeraldError("forbidden", "cookie: pages of another origin may not use the session");
  if (!sent.changes) return;
  if (sent.csrfToken === undefined || !timingSafeEqual(digest(sent.csrfToken), digest(csrfToken)))
    throw new HeraldError(
      "csrf-token-invalid",
      "Herald-Csrf: send the `csrf_token` of GET /admin/v1/sessions/current with every change",
    );
};

/**
 * Decides alone what operators may do: under `/admin/v1` by the role for the installation or for the project that the request is about,
 * under `/api/v1` by the role in the project that the request names. To a member, other projects do not exist.
 * Throws forbidden, project-not-found or validation-failed.
 */
const permitOperator =
  (projects: Pick<ProjectDirectory, "settings">) =>
  async (
    who: { readonly operator: ActingOperator; readonly session?: OperatorSession },
    access: Access,
    sent: RequestCredentials,
  ): Promise<Caller> => {
    const { operator } = who;
    if (sent.withoutOperators) throw forbidden("operators use the admin port");
    const needed = roleOf(access);
    if (needed === undefined) throw forbidden("operators cannot do this");
    if (access.by.includes("operator")) {
      checkRole(operator, needed, access.grant, sent.target);
      return { kind: "operator", ...who };
    }
    if (sent.project === undefined) throw forbidden("an operator names the project in the header `Herald-Project`");
    const projectId = ProjectId.safeParse(sent.project);
    if (!projectId.success) throw new HeraldError("validation-failed", "Herald-Project: must be a project id, prj_…");
    checkRole(operator, needed, needed, projectId.data);
    await projects.settings(projectId.data);
    return {
      kind: "project",
      projectId: projectId.data,
      tokenId: operator.id,
      scopes: scopesOf(roleIn(operator, projectId.data)),
      operator,
    };
  };

/** Checks for the role `needed` for the installation, or `inProject` for the project. */
const checkRole = (
  operator: ActingOperator,
  needed: OperatorRole,
  inProject: OperatorRole | undefined,
  project: string | undefined,
): void => {
  const { name, role } = operator;
  if (roleIncludes(role, needed)) return;
  const own = roleIn(operator, project);
  if (project !== undefined && own === "member") throw notFound("project-not-found", "project");
  if (project !== undefined && inProject !== undefined && roleIncludes(own, inProject)) return;
  const there = own === role ? "" : `, and \`${own}\` in this project`;
  throw forbidden(`this needs the role \`${needed}\`; the operator ${name} has \`${role}\`${there}`);
};
