import { type ProjectId, UserId } from "@herald/contracts";
import { HeraldError, type MasterKeys, unseal } from "@herald/kit";
import { compactVerify, decodeProtectedHeader, importJWK } from "jose";
import { type IdentityKeyEntry, type ProjectStore, secretOwner } from "../stores/project-store.ts";

/** The clocks of backends may be some seconds off. */
export const leewaySeconds = 60;
/** A leaked token is useless after that. */
const maxLifeSeconds = 86_400;

/** Headers that contain a key or require extensions. */
const refusedHeaders = ["jku", "jwk", "x5u", "x5c", "crit", "b64", "zip"] as const;

export const invalidUserToken = (message: string): HeraldError =>
  new HeraldError("user-token-invalid", `user_token: ${message}`);

const headerOf = (token: string): { kid?: unknown } => {
  let header: Record<string, unknown>;
  try {
    header = decodeProtectedHeader(token);
  } catch {
    throw invalidUserToken("is not a JWT");
  }
  const given = refusedHeaders.find((name) => header[name] !== undefined);
  if (given) throw invalidUserToken(`its header may not have \`${given}\``);
  return header;
};

const isTime = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** Checks the claims of a token whose signature is verified. `issuedAt`: seconds since 1970. */
export const readClaims = (claims: Readonly<Record<string, unknown>>, projectId: ProjectId, now: Date) => {
  const { sub, aud, iat, exp, nbf } = claims;
  const at = now.getTime() / 1_000;
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (audience !== projectId) throw invalidUserToken("its `aud` must be the project's id, and nothing else");
  const userId = UserId.safeParse(sub);
  if (!userId.success) throw invalidUserToken(`its \`sub\` ${userId.error.issues[0]?.message ?? "is no user id"}`);
  if (!isTime(iat) || !isTime(exp)) throw invalidUserToken("must have `iat` and `exp`, in seconds since 1970");
  if (nbf !== undefined && !isTime(nbf)) throw invalidUserToken("its `nbf` must be in seconds since 1970");
  if (exp <= iat || exp - iat > maxLifeSeconds)
    throw invalidUserToken("its `exp` must be at most 24 hours after its `iat`");
  if (exp <= at - leewaySeconds) throw invalidUserToken("has expired; get a new one from your backend");
  if (Math.max(iat, nbf ?? iat) > at + leewaySeconds)
    throw invalidUserToken("is from the future: the clock of the backend that made it is ahead");
  return { userId: userId.data, issuedAt: iat };
};

const isSigned = async (token: string, key: IdentityKeyEntry, material: string): Promise<Uint8Array | undefined> => {
  const { algorithm, secret } = key;
  const verifier = secret ? new TextEncoder().encode(material) : await importJWK(JSON.parse(material), algorithm);
  try {
    // The token must use the algorithm of the key.
    return (await compactVerify(token, verifier, { algorithms: [algorithm] })).payload;
  } catch {
    return undefined;
  }
};

const parseClaims = (payload: Uint8Array): Readonly<Record<string, unknown>> => {
  try {
    const claims: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload));
    if (typeof claims === "object" && claims !== null) return claims as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw invalidUserToken("its payload must be a JSON object");
};

/** Reads the project's identity keys each time, so that a deleted key is invalid at once. @throws HeraldError `user-token-invalid`. */
export const createVerifyUserToken =
  (projects: Pick<ProjectStore, "find">, masterKeys: MasterKeys, now: () => Date) =>
  async (projectId: ProjectId, token: string) => {
    const { kid } = headerOf(token);
    const project = await projects.find(projectId);
    const keys = project?.identityKeys ?? [];
    if (keys.length === 0) throw invalidUserToken("the project has no identity keys yet");
    for (const key of keys) {
      if (kid !== undefined && kid !== key.id) continue;
      const material = key.secret
        ? (unseal(masterKeys, secretOwner(projectId, key.id), key.secret).secret ?? "")
        : (key.publicKey ?? "");
      const payload = await isSigned(token, key, material);
      if (payload) return readClaims(parseClaims(payload), projectId, now());
    }
    throw invalidUserToken("is not signed with an identity key of this project, or names another one as `kid`");
  };
