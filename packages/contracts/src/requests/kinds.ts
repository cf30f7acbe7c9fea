import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { DeclaredKind } from "../http/v1/kinds.ts";
import { ProjectId } from "../ids.ts";
import { Kind } from "../tags.ts";

const project = { projectId: ProjectId };
const one = { ...project, kind: Kind };

export const kindRequests = defineRequests("registry.kinds", {
  /** Throws `kind-limit`. */
  put: oneRequest({ ...project, kind: DeclaredKind }, z.object({ created: z.boolean() })),
  get: oneRequest(one, DeclaredKind),
  list: listRequest(project, DeclaredKind),
  delete: oneRequest(one, z.object({})),
});
