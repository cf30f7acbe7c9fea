import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { Import, ImportFormat } from "../http/v1/imports.ts";
import { LineError } from "../http/v1/lines.ts";
import { ImportId, ProjectId } from "../ids.ts";

const one = { projectId: ProjectId, importId: ImportId };

export const importRequests = defineRequests("registry.imports", {
  /** The gateway creates the id, so that a repeat creates the same import. */
  create: oneRequest({ ...one, format: ImportFormat, dryRun: z.boolean() }, Import),
  get: oneRequest(one, Import),
  list: listRequest({ projectId: ProjectId }, Import),
  errors: listRequest(one, LineError),
});
