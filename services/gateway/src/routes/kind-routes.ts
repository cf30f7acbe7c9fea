import { DeclaredKind, DeleteKind, GetKind, ListKinds, PutKind, PutKindRequest } from "@herald/contracts";
import { projectAdmin, projectViewer } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";

const OneKind = dataOf(DeclaredKind);

const putKind = defineRoute("putKind", "put /admin/v1/projects/{id}/kinds/{kind}", {
  summary: "Declare a kind of notifications, or replace its declaration",
  description:
    "Says what applies to sends that name the kind: whether people get it until they choose, whether they can switch it off, when it is quiet, and how often a person gets it. A kind that is not declared goes to every device, any number of times. A project has at most 100 kinds.",
  access: projectAdmin,
  params: { id: projectParam, kind: newKindParam },
  body: PutKind,
  responses: {
    200: { description: "The changed kind", schema: OneKind },
    201: { description: "The new kind", schema: OneKind },
  },
  errors: ["kind-limit"],
  handle: async ({ sendRequest }, { params, body }) => {
    const kind = { kind: params.kind, ...body.kind };
    const { created: isNew } = await sendRequest(PutKindRequest, { projectId: params.id, kind });
    return isNew ? created(kind) : ok(kind);
  },
});

const listKinds = defineRoute("listKinds", "get /admin/v1/projects/{id}/kinds", {
  summary: "List the kinds that a project has declared, sorted by name",
  access: projectViewer,
  params: { id: projectParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of kinds", schema: pageOf(DeclaredKind) } },
  handle: async ({ sendRequest }, { params, query }) =>
    pageReply(await sendRequest(ListKinds, { projectId: params.id, page: pageRequest(query) })),
});

const getKind = defineRoute("getKind", "get /admin/v1/projects/{id}/kinds/{kind}", {
  summary: "Read a kind",
  access: projectViewer,
  params: { id: projectParam, kind: kindParam },
  responses: { 200: { description: "The kind", schema: OneKind } },
  handle: async ({ sendRequest }, { params }) =>
    ok(await sendRequest(GetKind, { projectId: params.id, kind: params.kind })),
});

const deleteKind = defineRoute("deleteKind", "delete /admin/v1/projects/{id}/kinds/{kind}", {
  summary: "Delete a kind",
  description:
    "Sends that name it go to every device, any number of times. What people chose counts again if it is declared again.",
  access: projectAdmin,
  params: { id: projectParam, kind: kindParam },
  responses: { 204: { description: "The kind is deleted" } },
  handle: async ({ sendRequest }, { params }) =>
    sendRequest(DeleteKind, { projectId: params.id, kind: params.kind }).then(noContent),
});

export const kindRoutes = [listKinds, getKind, putKind, deleteKind];
