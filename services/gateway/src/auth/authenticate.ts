import {
  deviceRequests,
  isOperatorToken,
  isSessionSecret,
  ProjectId,
  parseDeviceCredential,
  type Scope,
  UserToken,
  userRequests,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import type { SendRequest } from "../bus-connection.ts";
import { type Access, type Caller, type CallerKind, forbidden, invalidCredential } from "./caller.ts";
import type { OperatorDirectory, ProjectDirectory, TokenDirectory } from "./directories.ts";
import { checkSessionUse, permitOperator } from "./permit-operator.ts";
import type { RateLimits } from "./rate-limits.ts";
import type { RequestCredentials } from "./request-credentials.ts";
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
        sendRequest(userRequests.authenticate, { projectId, userToken }),
      );
      return { kind: "user", projectId, userId };
    } catch (error) {
      if (hasCode(error, "user-token-invalid")) await limits.countFailure(address);
      throw error;
    }
  };

  const projectOf = async (token: string, address: string): Promise<Caller | undefined> => {
    const record = await tokens.find(token, address);
    if (!record) return undefined;
    const { projectId, id: tokenId, scopes, createdBy: owner } = record;
    return { kind: "project", projectId, tokenId, scopes, owner };
  };

  /** The caller of a credential; undefined when the credential is invalid. */
  const verifyCredential = async (
    credential: string,
    access: Access,
    sent: RequestCredentials,
    address: string,
  ): Promise<Caller | undefined> => {
    const byOperator = access.by.includes("operator");
    // Nearly all credentials are project tokens. With the header for a project it may be an admin token of any form.
    if (credential.startsWith("hpt_") && !byOperator && sent.project === undefined)
      return projectOf(credential, address);
    if (isSessionSecret(credential)) return verifySession("authorization", credential, access, sent, address);
    if (byOperator || sent.project !== undefined || isOperatorToken(credential)) {
      const operator = await operators.find(credential, address);
      if (operator !== undefined || byOperator) return operator && permit({ operator }, access, sent);
    }
    const audience = access.by.includes("user") ? audienceOf(credential) : undefined;
    if (audience !== undefined) return verifyUser(audience, credential, address);
    const device = parseDeviceCredential(credential);
    if (device === undefined) return projectOf(credential, address);
    if (!access.by.includes("device")) throw forbidden(`a device credential cannot do this; send ${names(access)}`);
    // Verification is a request to registry, so rate limits stop guessing clients first.
    const { projectId, deviceId, hash: credentialHash } = device;
    const { valid } = await limits.countWhileVerifying(address, () =>
      sendRequest(deviceRequests.authenticate, { projectId, deviceId, credentialHash }),
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
