import {
  CreateIdentityKey,
  CreateIdentityKeyRequest,
  DeleteIdentityKey,
  IdentityKey,
  type IdentityKeyId,
  ListIdentityKeys,
  newIdentityKeyId,
  pageOf,
  pageQuery,
} from "@herald/contracts";
import { z } from "zod";
import { admin, viewer } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { identityKeyParam, projectParam } from "./path-params.ts";

const createIdentityKey = defineRoute({
  method: "post",
  path: "/admin/v1/projects/{id}/identity-keys",
  operationId: "createIdentityKey",
  tag: "Administration",
  summary: "Create an identity secret, or register a public key",
  description:
    "Your backend signs user tokens with it. `{}` creates a secret for HS256, which only this response contains; sign with the bytes of the whole text. A `public_key`, as PEM or JWK, verifies ES256 (P-256), EdDSA (Ed25519) or RS256 (2048 bits or more). A project has at most two secrets and four public keys.",
  access: admin,
  params: { id: projectParam },
  body: CreateIdentityKey,
  responses: {
    201: {
      description: "The key",
      schema: z.object({
        data: IdentityKey,
        secret: z
          .string()
          .optional()
          .meta({ description: "`his_…`; absent for a public key, and when a response is replayed" }),
      }),
    },
  },
  errors: ["project-not-found", "identity-key-limit"],
  handle: async ({ sendRequest }, { params, body, idempotent }) =>
    idempotent({
      newId: newIdentityKeyId,
      perform: async ({ id }) => {
        const { key, secret } = await sendRequest(CreateIdentityKeyRequest, {
          projectId: params.id,
          keyId: id as IdentityKeyId,
          ...(body.public_key === undefined ? {} : { publicKey: body.public_key }),
        });
        return created({ data: key, ...(secret === undefined ? {} : { secret }) });
      },
    }),
});

const listIdentityKeys = defineRoute({
  method: "get",
  path: "/admin/v1/projects/{id}/identity-keys",
  operationId: "listIdentityKeys",
  tag: "Administration",
  summary: "List a project's identity keys, oldest first",
  access: viewer,
  params: { id: projectParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of keys, without their secrets", schema: pageOf(IdentityKey) } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, request) => {
    const projectId = request.params.id;
    return pageReply(request, await sendRequest(ListIdentityKeys, { projectId, page: pageRequest(request.query) }));
  },
});

const deleteIdentityKey = defineRoute({
  method: "delete",
  path: "/admin/v1/projects/{id}/identity-keys/{key}",
  operationId: "deleteIdentityKey",
  tag: "Administration",
  summary: "Delete an identity key",
  description: "User tokens signed with it are refused from now on. Devices keep their users.",
  access: admin,
  params: { id: projectParam, key: identityKeyParam },
  responses: { 204: { description: "The key is deleted" } },
  errors: ["project-not-found"],
  handle: async ({ sendRequest }, { params }) => {
    await sendRequest(DeleteIdentityKey, { projectId: params.id, keyId: params.key });
    return noContent();
  },
});

export const identityKeyRoutes = [createIdentityKey, listIdentityKeys, deleteIdentityKey];
