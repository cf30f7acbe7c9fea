import { AuthenticateDevice, isOperatorToken, parseDeviceCredential, type Scope } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { SendRequest } from "../deps.ts";
import type { TokenDirectory } from "../records/token-directory.ts";
import { createAuthenticateOperator, type OperatorDeps } from "./authenticate-operator.ts";
import type { Access, Caller, CallerKind } from "./caller.ts";
import type { Credentials } from "./credentials.ts";

type Deps = OperatorDeps & {
  readonly tokens: TokenDirectory;
  readonly sendRequest: SendRequest;
};

const wanted: Record<CallerKind, string> = {
  project: "a project token (hpt_…)",
  device: "a device credential (hdc_…)",
  client: "`project_id` and `identifier` in the body, without this header",
  operator: "an operator token (hop_…)",
};

const names = (access: Access): string => access.by.map((kind) => wanted[kind]).join(" or ");

const unauthenticated = (message: string, challenge: string): HeraldError =>
  new HeraldError("unauthenticated", `authorization: ${message}`, { headers: { "www-authenticate": challenge } });

const forbidden = (message: string, challenge?: string): HeraldError =>
  new HeraldError(
    "forbidden",
    `authorization: ${message}`,
    challenge === undefined ? {} : { headers: { "www-authenticate": challenge } },
  );

const quoted = (scopes: readonly Scope[]): string => scopes.map((scope) => `\`${scope}\``).join(", ");

const lacking = (scopes: readonly Scope[], access: Access): Scope[] =>
  (access.scopes ?? []).filter((scope) => !scopes.includes(scope));

/** RFC 6750: a bearer token is visible ASCII; the longest of ours has 140 characters. */
const bearer = /^Bearer +([\x21-\x7e]{1,512}) *$/i;

/** Authenticates the caller. Refusals are counted against the address; valid credentials never are. */
export const createAuthenticate = ({ tokens, sendRequest, ...deps }: Deps) => {
  const { limits } = deps;
  const operators = createAuthenticateOperator(deps);

  /** The caller of a credential; undefined when the credential is invalid. */
  const verifyCredential = async (
    credential: string,
    access: Access,
    sent: Credentials,
    address: string,
  ): Promise<Caller | undefined> => {
    const byOperator = access.by.includes("operator");
    if (byOperator || sent.project !== undefined || isOperatorToken(credential)) {
      const caller = await operators.byToken(credential, access, sent, address);
      if (caller !== undefined || byOperator) return caller;
    }
    const device = parseDeviceCredential(credential);
    if (device === undefined) {
      const record = await tokens.find(credential, address);
      return record && { kind: "project", projectId: record.projectId, tokenId: record.id, scopes: record.scopes };
    }
    if (!access.by.includes("device")) throw forbidden(`a device credential cannot do this; send ${names(access)}`);
    // Verification is a request to registry, so rate limits stop clients that guess before it.
    const { projectId, deviceId, hash: credentialHash } = device;
    const { valid } = await limits.countWhileVerifying(address, () =>
      sendRequest(AuthenticateDevice, { projectId, deviceId, credentialHash }),
    );
    return valid ? { kind: "device", projectId, deviceId } : undefined;
  };

  /** Apps send a stale credential when they register again, so an invalid one counts as a failure but is not refused. */
  const deviceOrClient = async (access: Access, sent: Credentials, address: string): Promise<Caller> => {
    const credential = bearer.exec(sent.authorization ?? "")?.[1] ?? "";
    if (!parseDeviceCredential(credential)) return { kind: "client" };
    const caller = await verifyCredential(credential, { ...access, by: ["device"] }, sent, address);
    if (caller) return caller;
    await limits.countFailure(address);
    return { kind: "client" };
  };

  return async (access: Access, sent: Credentials, address: string): Promise<Caller> => {
    const { authorization, session } = sent;
    if (access.orDevice) return deviceOrClient(access, sent, address);
    // A form of another site could sign its visitor in as the attacker, who would read what the visitor then enters.
    if (access.signsIn && sent.fromOtherOrigin)
      throw new HeraldError("forbidden", "origin: pages of another origin may not sign in");
    const isClient = access.by.includes("client");
    if (access.by.every((kind) => kind === "client")) return { kind: "client" };
    // Where the body may identify the client, a browser's cookie means nothing until it names a project.
    const usesSession = !sent.withoutOperators && !access.signsIn && (!isClient || sent.project !== undefined);
    if (authorization === undefined && session !== undefined && usesSession)
      return operators.bySession(session, access, sent, address);
    if (authorization === undefined && isClient) return { kind: "client" };
    if (authorization === undefined) {
      await limits.countFailure(address);
      throw unauthenticated(`send \`Bearer\` and ${names(access)}`, 'Bearer realm="herald"');
    }
    const credential = bearer.exec(authorization)?.[1];
    const caller = credential === undefined ? undefined : await verifyCredential(credential, access, sent, address);
    if (caller === undefined) {
      await limits.countFailure(address);
      throw unauthenticated(
        `the credential is invalid; send \`Bearer\` and ${names(access)}`,
        'Bearer realm="herald", error="invalid_token"',
      );
    }
    if (!access.by.includes(caller.kind)) throw forbidden(`this credential cannot do this; send ${names(access)}`);
    const missing = caller.kind === "project" ? lacking(caller.scopes, access) : [];
    if (caller.kind === "project" && missing.length > 0) {
      throw forbidden(
        `the project token lacks the scope ${quoted(missing)}; it has ${quoted(caller.scopes)}`,
        `Bearer realm="herald", error="insufficient_scope", scope="${access.scopes?.join(" ")}"`,
      );
    }
    return caller;
  };
};
