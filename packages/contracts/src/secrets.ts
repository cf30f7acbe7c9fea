import { hash, randomBytes } from "node:crypto";
import { z } from "zod";
import { type DeviceId, encodeBase32, idBytes, type ProjectId } from "./ids.ts";
import { secretHash } from "./records.ts";

const secretBytes = 32;
/** Distinguishes a mistyped or truncated secret from an unknown one without a lookup. */
const checksumBytes = 3;

/** Of a project token, to tell tokens of the same name apart. */
export const tokenFingerprint = (tokenHash: string): string => tokenHash.slice(0, 16);

const sorted = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

/** SHA-256 of a provider's settings, as JSON with sorted keys. The private keys in it cannot be guessed. */
export const settingsFingerprint = (settings: unknown): string => secretHash(JSON.stringify(settings, sorted));

/** The key of the record of a person whom an identity provider names. Never the email, which a provider may give to someone else. */
export const identityHash = (issuer: string, subject: string): string => secretHash(`oidc\n${issuer}\n${subject}`);

/** A {@link secretHash}. It becomes the key of a record, so no other text may stand for it. */
export const SecretHash = z
  .string()
  .regex(/^[0-9a-f]{64}$/, "must be 64 hex digits")
  .meta({ examples: [secretHash("")] });

/** SHA-256 of a push token as 64 hex digits. Indexes and events contain it instead of the token. */
export const pushTokenHash = secretHash;

const checksum = (prefix: string, body: Uint8Array): Buffer =>
  hash("sha256", Buffer.concat([Buffer.from(prefix), body]), "buffer").subarray(0, checksumBytes);

const seal = (prefix: string, body: Uint8Array): string =>
  prefix + Buffer.concat([body, checksum(prefix, body)]).toString("base64url");

const unseal = (prefix: string, bodyBytes: number, secret: string): Buffer | undefined => {
  if (!secret.startsWith(prefix)) return undefined;
  const bytes = Buffer.from(secret.slice(prefix.length), "base64url");
  if (bytes.length !== bodyBytes + checksumBytes) return undefined;
  const body = bytes.subarray(0, bodyBytes);
  // Two spellings of the same bytes must not both be valid.
  return seal(prefix, body) === secret ? body : undefined;
};

/** A new project token, `hpt_…`: 32 random bytes and a checksum. */
export const newProjectToken = (): string => seal("hpt_", randomBytes(secretBytes));

/** Whether a text has the form and the checksum of a project token; the token may still be unknown. */
export const isProjectToken = (text: string): boolean => unseal("hpt_", secretBytes, text) !== undefined;

/** A new operator token, `hop_…`: 32 random bytes and a checksum. */
export const newOperatorToken = (): string => seal("hop_", randomBytes(secretBytes));

/** Whether a text has the form and the checksum of an operator token; the token may still be unknown. */
export const isOperatorToken = (text: string): boolean => unseal("hop_", secretBytes, text) !== undefined;

/** A new session secret, `hss_…`: the value of the session cookie. */
export const newSessionSecret = (): string => seal("hss_", randomBytes(secretBytes));
export const isSessionSecret = (text: string): boolean => unseal("hss_", secretBytes, text) !== undefined;

/** A new sign-in code, `hoc_…`: exchanged once for a session. */
export const newSignInCode = (): string => seal("hoc_", randomBytes(secretBytes));
export const isSignInCode = (text: string): boolean => unseal("hoc_", secretBytes, text) !== undefined;

/** A new identity secret, `his_…`: the whole text is the key that signs user tokens. */
export const newIdentitySecret = (): string => seal("his_", randomBytes(secretBytes));

/** A new device credential, `hdc_…`. It contains its project and device, so verifying it is one point read. */
export const newDeviceCredential = (projectId: ProjectId, deviceId: DeviceId): string =>
  seal("hdc_", Buffer.concat([idBytes(projectId), idBytes(deviceId), randomBytes(secretBytes)]));

/** The project and device that a credential names, not yet verified; undefined if form or checksum is wrong. */
export const parseDeviceCredential = (
  text: string,
): { projectId: ProjectId; deviceId: DeviceId; hash: string } | undefined => {
  const body = unseal("hdc_", 32 + secretBytes, text);
  if (!body) return undefined;
  return {
    projectId: `prj_${encodeBase32(body.subarray(0, 16))}`,
    deviceId: `dev_${encodeBase32(body.subarray(16, 32))}`,
    hash: secretHash(text),
  };
};
