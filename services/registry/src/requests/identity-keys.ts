import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  CreateIdentityKeyRequest,
  DeleteIdentityKey,
  identityKeyLimits,
  ListIdentityKeys,
  newIdentitySecret,
} from "@herald/contracts";
import { HeraldError, type MasterKeys, seal, unseal } from "@herald/kit";
import { pageOfRows } from "@herald/mongo";
import { parsePublicKey } from "../identity/parse-public-key.ts";
import { secretOwner } from "../identity/verify-user-token.ts";
import type { IdentityKeyEntry, ProjectStore } from "../stores/project-store.ts";
import { noProject } from "./projects.ts";
import { identityKeyView } from "./views.ts";

type Parts = { readonly projects: ProjectStore; readonly masterKeys: MasterKeys; readonly now: () => Date };

const full = ({ secret }: IdentityKeyEntry): HeraldError =>
  new HeraldError(
    "identity-key-limit",
    secret
      ? `identity-keys: the project has ${identityKeyLimits.secrets} identity secrets; delete one that your backend no longer signs with`
      : `identity-keys: the project has ${identityKeyLimits.publicKeys} public keys; delete one that your backend no longer signs with`,
  );

/** What verifies a project's user tokens. Secrets are at rest in an envelope, and leave it to verify a token alone. */
export const answerIdentityKeys = (bus: Bus, { projects, masterKeys, now }: Parts): RequestListener[] => [
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
    // Not what was made here: a request that is repeated gets the key that the first one made.
    const stored = (await projects.find(projectId))?.identityKeys?.find((one) => one.id === id);
    if (added === undefined) throw noProject();
    if (!stored) throw new HeraldError("identity-key-not-found", "identity key: it was deleted meanwhile");
    const { secret } = stored.secret ? unseal(masterKeys, owner, stored.secret) : {};
    return { key: identityKeyView(stored), ...(secret !== undefined && { secret }) };
  }),

  handleRequest(bus, ListIdentityKeys, async ({ projectId, page }) => {
    const project = await projects.find(projectId);
    if (!project) throw noProject();
    const rows = (project.identityKeys ?? []).map(identityKeyView);
    return pageOfRows(rows, { request: page, key: ({ id }) => id });
  }),

  handleRequest(bus, DeleteIdentityKey, async ({ projectId, keyId }) => {
    if (await projects.removeIdentityKey(projectId, keyId)) return {};
    if (!(await projects.find(projectId))) throw noProject();
    throw new HeraldError("identity-key-not-found", "identity key: the project has none of this id");
  }),
];
