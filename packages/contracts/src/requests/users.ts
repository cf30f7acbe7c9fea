import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { CreateIdentityKey, IdentityKey } from "../http/v1/identity.ts";
import { User, UserListQuery, UserSummary } from "../http/v1/users.ts";
import { IdentityKeyId, ProjectId } from "../ids.ts";
import { UserId, UserToken } from "../users.ts";

const project = { projectId: ProjectId };

const user = { ...project, userId: UserId };

export const userRequests = defineRequests("registry.users", {
  /** The user of a user token. Throws `user-token-invalid`. */
  authenticate: oneRequest({ projectId: ProjectId, userToken: UserToken }, z.object({ userId: UserId })),
  get: oneRequest(user, User),
  /** The users with devices, by id. A short page may still have a `next`. */
  list: listRequest(project, UserSummary, UserListQuery),
  /** Deletes the user's devices, and makes every service erase the user. Repeatable. */
  erase: oneRequest(user, z.object({ erasedAt: z.iso.datetime() })),
});

export const identityKeyRequests = defineRequests("registry.identity-keys", {
  /** Creates a secret, or registers a public key. The gateway creates the id, so that a repeated request creates only one key. */
  create: oneRequest(
    { ...project, keyId: IdentityKeyId, publicKey: CreateIdentityKey.shape.public_key },
    z.object({ key: IdentityKey, secret: z.string().optional() }),
  ),
  list: listRequest(project, IdentityKey),
  delete: oneRequest({ ...project, keyId: IdentityKeyId }, z.object({})),
});
