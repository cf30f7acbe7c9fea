import { handleRequest, type RequestListener } from "@herald/bus";
import {
  CreateIdentityKeyRequest,
  DeleteIdentityKey,
  identityKeyLimits,
  ListIdentityKeys,
  newIdentitySecret,
} from "@herald/contracts";
import { HeraldError, seal, unseal } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { parsePublicKey } from "../identity/parse-public-key.ts";
import { type IdentityKeyEntry, secretOwner } from "../stores/project-store.ts";
import { projectNotFound } from "./projects.ts";
import { identityKeyView } from "./views.ts";

const full = ({ secret }: IdentityKeyEntry): HeraldError =>
  new HeraldError(
    "identity-key-limit",
    `identity-keys: the project has ${secret ? `${identityKeyLimits.secrets} identity secrets` : `${identityKeyLimits.publicKeys} public keys`}; delete one that your backend no longer signs with`,
  );

/** Secrets are stored encrypted and decrypted only to verify a token, and for the reply that shows them once. */
export const handleIdentityKeyRequests = ({ bus, projects, masterKeys, now }: Deps): RequestListener[] => [
  handleRequest(bus, CreateIdentityKeyRequest, async ({ projectId, keyId: id, publicKey }) => {
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
    const stored = (await projects.find(projectId))?.identityKeys?.find((one) => one.id === id);
    if (added === undefined) throw projectNotFound();
    if (!stored) throw new HeraldError("identity-key-not-found", "identity key: it was deleted meanwhile");
    const { secret } = stored.secret ? unseal(masterKeys, owner, stored.secret) : {};
    return { key: identityKeyView(stored), ...(secret !== undefined && { secret }) };
  }),

  handleRequest(bus, ListIdentityKeys, async ({ projectId, page }) => {
    const project = await projects.find(projectId);
    if (!project) throw projectNotFound();
    const rows = (project.identityKeys ?? []).map(identityKeyView);
    return pageOfRows(rows, { request: page, key: ({ id }) => id });
  }),

  handleRequest(bus, DeleteIdentityKey, async ({ projectId, keyId }) => {
    if (await projects.removeIdentityKey(projectId, keyId)) return {};
    if (!(await projects.find(projectId))) throw projectNotFound();
    throw new HeraldError("identity-key-not-found", "identity key: the project has none of this id");
  }),
];
