import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { Import, ImportError, ImportFormat } from "../http/v1/imports.ts";
import { isDeepPage, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { ImportId, ProjectId } from "../ids.ts";

const one = { projectId: ProjectId, importId: ImportId };

/** The gateway makes the id, so that a repeat creates the same import. */
export const CreateImportRequest = defineRequest(
  "registry.imports.create",
  z.object({ ...one, format: ImportFormat, dryRun: z.boolean() }),
  Import,
);
export const GetImport = defineRequest("registry.imports.get", z.object(one), Import);
export const ListImports = defineRequest(
  "registry.imports.list",
  z.object({ projectId: ProjectId, page: PageRequest }),
  pageOf(Import),
  isDeepPage,
);
export const ListImportErrors = defineRequest(
  "registry.imports.errors",
  z.object({ ...one, page: PageRequest }),
  pageOf(ImportError),
  isDeepPage,
);
