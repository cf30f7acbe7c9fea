import { DeclaredKind, kindRequests, PutKind } from "@herald/contracts";
import { projectAdmin, projectViewer } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";

const OneKind = dataOf(DeclaredKind);

export const kindRoutes = [
  forwardRoute("listKinds", "get /admin/v1/projects/{id}/kinds", {
    summary: "List the kinds that a project has declared, sorted by name",
    access: projectViewer,
    forward: kindRequests.list,
    response: "A page of kinds",
  }),
  forwardRoute("getKind", "get /admin/v1/projects/{id}/kinds/{kind}", {
    summary: "Read a kind",
    access: projectViewer,
    forward: kindRequests.get,
    response: "The kind",
  }),
  defineRoute("putKind", "put /admin/v1/projects/{id}/kinds/{kind}", {
    summary: "Declare a kind of notifications, or replace its declaration",
    description:
      "Says what applies to sends that name the kind: whether people get it until they choose, whether they can switch it off, when it is quiet, and how often a person gets it. A kind that is not declared goes to every device, any number of times. A project has at most 100 kinds.",
    access: projectAdmin,
    creates: "kind",
    body: PutKind,
    responses: {
      200: { description: "The changed kind", schema: OneKind },
      201: { description: "The new kind", schema: OneKind },
    },
    errors: ["kind-limit"],
    handle: async ({ sendRequest }, { params, body }) => {
      const kind = { kind: params.kind, ...body.kind };
      const { created: isNew } = await sendRequest(kindRequests.put, { projectId: params.id, kind });
      return isNew ? created(kind) : ok(kind);
    },
  }),
  forwardRoute("deleteKind", "delete /admin/v1/projects/{id}/kinds/{kind}", {
    summary: "Delete a kind",
    description:
      "Sends that name it go to every device, any number of times. What people chose counts again if it is declared again.",
    access: projectAdmin,
    forward: kindRequests.delete,
    response: "The kind is deleted",
  }),
];
