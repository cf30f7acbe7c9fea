import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { DeclaredKind } from "../http/v1/kinds.ts";
import { ProjectId } from "../ids.ts";
import { Kind } from "../tags.ts";

const project = { projectId: ProjectId };
const one = { ...project, kind: Kind };

/** Throws `kind-limit`. */
export const PutKindRequest = defineRequest(
  "registry.kinds.put",
  { ...project, kind: DeclaredKind },
  z.object({ created: z.boolean() }),
);
export const GetKind = defineRequest("registry.kinds.get", one, DeclaredKind);
export const ListKinds = defineList("registry.kinds.list", project, DeclaredKind);
export const DeleteKind = defineRequest("registry.kinds.delete", one, z.object({}));
