import {
  CreateImport,
  CreateImportRequest,
  GetImport,
  Import,
  ImportContentQuery,
  ImportError,
  ImportId,
  ListImportErrors,
  ListImports,
  newImportId,
  pageOf,
  pageQuery,
} from "@herald/contracts";
import { allowLongUpload, HeraldError } from "@herald/kit";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, ok } from "../http/reply.ts";
import { defineRoute, type PathParam } from "../http/route.ts";
import { isCsvUpload, readUpload, uploadTypes } from "../imports/read-upload.ts";
import { splitLines } from "../imports/split-lines.ts";
import { storeLines } from "../imports/store-lines.ts";

const importParam: PathParam<typeof ImportId> = { schema: ImportId, error: "import-not-found" };

const createImport = defineRoute({
  method: "post",
  path: "/api/v1/imports",
  operationId: "createImport",
  tag: "Devices",
  summary: "Start an import of devices from a file",
  description:
    "Then upload the file with `PUT /imports/{id}/content`. An import creates and updates devices as `PUT /devices` does: without credentials, and a repeat changes nothing. Reports are kept for 30 days.",
  access: project("devices"),
  body: CreateImport,
  responses: { 201: { description: "The import waits for its file", schema: z.object({ data: Import }) } },
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) => {
    const { format, dry_run: dryRun = false } = body.import;
    return idempotent({
      newId: newImportId,
      perform: async ({ id }) =>
        created({
          data: await sendRequest(CreateImportRequest, { projectId, importId: id as ImportId, format, dryRun }),
        }),
    });
  },
});

const listImports = defineRoute({
  method: "get",
  path: "/api/v1/imports",
  operationId: "listImports",
  tag: "Devices",
  summary: "List imports, oldest first",
  access: project("devices"),
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of imports", schema: pageOf(Import) } },
  handle: async ({ sendRequest }, request) => {
    const { projectId } = request.caller;
    return pageReply(request, await sendRequest(ListImports, { projectId, page: pageRequest(request.query) }));
  },
});

const getImport = defineRoute({
  method: "get",
  path: "/api/v1/imports/{id}",
  operationId: "getImport",
  tag: "Devices",
  summary: "Read how far an import is",
  access: project("devices"),
  params: { id: importParam },
  responses: { 200: { description: "The import", schema: z.object({ data: Import }) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    ok({ data: await sendRequest(GetImport, { projectId, importId: params.id }) }),
});

const listImportErrors = defineRoute({
  method: "get",
  path: "/api/v1/imports/{id}/errors",
  operationId: "listImportErrors",
  tag: "Devices",
  summary: "List why lines of an import were refused, by line",
  description: "An import keeps 10,000 errors; `errors_left_out` of the import counts the others.",
  access: project("devices"),
  params: { id: importParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of errors", schema: pageOf(ImportError) } },
  handle: async ({ sendRequest }, request) => {
    const { caller, params, query } = request;
    const asked = { projectId: caller.projectId, importId: params.id, page: pageRequest(query) };
    return pageReply(request, await sendRequest(ListImportErrors, asked));
  },
});

const uploadImport = defineRoute({
  method: "put",
  path: "/api/v1/imports/{id}/content",
  operationId: "uploadImport",
  tag: "Devices",
  summary: "Upload the file of an import",
  description:
    "NDJSON or CSV in UTF-8 by its Content-Type, also as gzip, of any size; `text/plain` for formats with one token or one XML element a line. A line has at most 64 KiB. Herald reads no faster than it processes. The response comes when all lines are stored; they may still be processed then. After a broken connection, send the whole file again with `after_line` = the import's `lines_stored`. A line that cannot be imported is an error of the import and stops nothing.",
  access: project("devices"),
  params: { id: importParam },
  query: ImportContentQuery,
  upload: uploadTypes,
  responses: { 200: { description: "The whole file is stored", schema: z.object({ data: Import }) } },
  errors: ["import-completed", "import-position-mismatch", "malformed-request"],
  handle: async (
    { sendRequest, acquireUpload, prepareChunk, now },
    { caller: { projectId }, params, query, message },
  ) => {
    const one = { projectId, importId: params.id };
    const release = acquireUpload(projectId);
    try {
      const { status, lines_stored: stored } = await sendRequest(GetImport, one);
      const isCsv = isCsvUpload(message);
      if (status !== "uploading")
        throw new HeraldError("import-completed", "id: the import has its whole file; start another one");
      const { after_line: afterLine = 0 } = query;
      if (afterLine !== stored)
        throw new HeraldError(
          "import-position-mismatch",
          `after_line: must be ${stored}, for Herald has stored so many lines; send the whole file, it skips them`,
        );
      allowLongUpload(message);
      await storeLines(splitLines(readUpload(message), isCsv), {
        ...one,
        isCsv,
        afterLine,
        now,
        isGone: () => message.socket.destroyed,
        prepare: prepareChunk,
      });
      return ok({ data: await sendRequest(GetImport, one) });
    } finally {
      release();
      // What was not read would block the response on this connection.
      message.resume();
    }
  },
});

export const importRoutes = [createImport, listImports, getImport, listImportErrors, uploadImport];
