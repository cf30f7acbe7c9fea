import { z } from "zod";
import { defineRequests, list, request } from "../envelope.ts";
import { DeclaredKind } from "../http/v1/kinds.ts";
import { ProjectId } from "../ids.ts";
import { Kind } from "../tags.ts";

const project = { projectId: ProjectId };
const one = { ...project, kind: Kind };

export const kindRequests = defineRequests("registry.kinds", {
  /** Throws `kind-limit`. */
  put: request({ ...project, kind: DeclaredKind }, z.object({ created: z.boolean() })),
  get: request(one, DeclaredKind),
  list: list(project, DeclaredKind),
  delete: request(one, z.object({})),
});
