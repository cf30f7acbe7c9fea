import { createPublicKey, type KeyObject } from "node:crypto";
import { handleRequest, type RequestListener } from "@herald/bus";
import {
  type IdentityAlgorithm,
  type IdentityKey,
  identityKeyLimits,
  identityKeyRequests,
  newIdentitySecret,
} from "@herald/contracts";
import { HeraldError, notFound, seal, unseal } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { type IdentityKeyEntry, secretOwner } from "../stores/project-store.ts";

/** Shorter keys are weak; with longer ones a verification costs more than a millisecond. */
const rsaBits = { min: 2_048, max: 8_192 };
const minRsaExponent = 65_537n;

const refused = (message: string): HeraldError => new HeraldError("validation-failed", `public_key: ${message}`);

const accepted = "a P-256 (ES256), Ed25519 (EdDSA) or RSA (RS256, 2048 to 8192 bits) public key";

const pem = /^\s*-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*$/;

const fromJwk = (jwk: Readonly<Record<string, unknown>>): KeyObject => {
  // A private key that was sent is no longer private, and Herald generates its secrets itself.
  for (const field of ["d", "k", "p", "q", "dp", "dq", "qi", "oth"])
    if (Object.hasOwn(jwk, field))
      throw refused(`is a JWK with the private member \`${field}\`; send the public key alone`);
  if (jwk.use !== undefined && jwk.use !== "sig") throw refused("is a JWK whose `use` is not `sig`");
  const { kty, crv, x, y, n, e } = jwk;
  const members = Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => typeof value === "string");
  return createPublicKey({ key: Object.fromEntries(members), format: "jwk" });
};

const fromPem = (text: string): KeyObject => {
  // createPublicKey also accepts private keys and certificates.
  if (!pem.test(text)) throw refused("must be one PEM block that begins with -----BEGIN PUBLIC KEY-----");
  return createPublicKey({ key: text, format: "pem" });
};

const algorithmOf = ({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): IdentityAlgorithm => {
  const { namedCurve, modulusLength = 0, publicExponent = 0n } = asymmetricKeyDetails;
  if (asymmetricKeyType === "ec" && namedCurve === "prime256v1") return "ES256";
  if (asymmetricKeyType === "ed25519") return "EdDSA";
  if (asymmetricKeyType !== "rsa") throw refused(`must be ${accepted}`);
  if (modulusLength < rsaBits.min || modulusLength > rsaBits.max)
    throw refused(`is an RSA key of ${modulusLength} bits; must be ${accepted}`);
  if (publicExponent < minRsaExponent) throw refused("is an RSA key with a public exponent below 65537");
  return "RS256";
};

/** Parses a public key in PEM or JWK; `jwk`: JSON of its public members. @throws HeraldError `validation-failed`. */
export const parsePublicKey = (given: string | Readonly<Record<string, unknown>>) => {
  let key: KeyObject;
  try {
    key = typeof given === "string" ? fromPem(given) : fromJwk(given);
  } catch (error) {
    throw error instanceof HeraldError ? error : refused(`does not parse; must be ${accepted}, as PEM or JWK`);
  }
  const algorithm = algorithmOf(key);
  if (typeof given !== "string" && given.alg !== undefined && given.alg !== algorithm)
    throw refused(`is a JWK whose \`alg\` is not ${algorithm}, which its key is for`);
  return { algorithm, jwk: JSON.stringify(key.export({ format: "jwk" })) };
};

const full = ({ secret }: IdentityKeyEntry): HeraldError =>
  new HeraldError(
    "identity-key-limit",
    `identity-keys: the project has ${secret ? `${identityKeyLimits.secrets} identity secrets` : `${identityKeyLimits.publicKeys} public keys`}; delete one that your backend no longer signs with`,
  );

const identityKeyView = ({ id, algorithm, createdAt }: IdentityKeyEntry): IdentityKey => ({
  id,
  algorithm,
  created_at: createdAt.toISOString(),
});

type IdentityKeyDeps = Pick<Deps, "bus" | "masterKeys" | "now" | "projects">;

/** Secrets are stored encrypted. They are decrypted only to verify a token and for the one reply that shows them. */
export const handleIdentityKeyRequests = ({ bus, projects, masterKeys, now }: IdentityKeyDeps): RequestListener[] => [
  handleRequest(bus, identityKeyRequests.create, async ({ projectId, keyId: id, publicKey }) => {
    const owner = secretOwner(projectId, id);
    const newKey = (): IdentityKeyEntry => {
      if (publicKey === undefined) {
        const secret = seal(masterKeys, owner, { secret: newIdentitySecret() });
        return { id, algorithm: "HS256", secret, createdAt: now() };
      }
      const { algorithm, jwk } = parsePublicKey(publicKey);
      return { id, algorithm, publicKey: jwk, createdAt: now() };
    };
    const key = newKey();
    const added = await projects.addIdentityKey(projectId, key);
    if (added === "full") throw full(key);
    // Read again: a repeated request gets the key that the first one created.
    const stored = (await projects.get(projectId)).identityKeys?.find((one) => one.id === id);
    if (!stored) throw notFound("identity-key-not-found", "key", "it was deleted meanwhile");
    const { secret } = stored.secret ? unseal(masterKeys, owner, stored.secret) : {};
    return { key: identityKeyView(stored), ...(secret !== undefined && { secret }) };
  }),

  handleRequest(bus, identityKeyRequests.list, async ({ projectId, page }) => {
    const { identityKeys = [] } = await projects.get(projectId);
    const rows = identityKeys.map(identityKeyView);
    return pageOfRows(rows, { request: page, key: ({ id }) => id });
  }),

  handleRequest(bus, identityKeyRequests.delete, async ({ projectId, keyId }) => {
    if (await projects.removeIdentityKey(projectId, keyId)) return {};
    await projects.get(projectId);
    throw notFound("identity-key-not-found", "key");
  }),
];
