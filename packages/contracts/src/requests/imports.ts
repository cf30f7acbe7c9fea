import { z } from "zod";
import { defineRequests, list, request } from "../envelope.ts";
import { Import, ImportFormat } from "../http/v1/imports.ts";
import { LineError } from "../http/v1/lines.ts";
import { ImportId, ProjectId } from "../ids.ts";

const one = { projectId: ProjectId, importId: ImportId };

export const importRequests = defineRequests("registry.imports", {
  /** The gateway creates the id, so that a repeat creates the same import. */
  create: request({ ...one, format: ImportFormat, dryRun: z.boolean() }, Import),
  get: request(one, Import),
  list: list({ projectId: ProjectId }, Import),
  errors: list(one, LineError),
});
