import {
  CreateImport,
  CreateImportRequest,
  GetImport,
  Import,
  ImportContentQuery,
  ListImportErrors,
  ListImports,
  newImportId,
} from "@herald/contracts";
import { HeraldError, positionMismatch } from "@herald/kit";
import { project, shareOwner } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { importLines } from "../uploads/import-lines.ts";
import { isCsvUpload, uploadTypes } from "../uploads/read-upload.ts";
import { storeUpload } from "../uploads/store-upload.ts";

const importParam: PathParam<typeof ImportId> = { schema: ImportId, error: "import-not-found" };

const createImport = defineRoute("createImport", "post /api/v1/imports", {
  summary: "Start an import of devices from a file",
  description:
    "Then upload the file with `PUT /imports/{id}/content`. An import creates and updates devices as `PUT /devices` does: without credentials, and a repeat changes nothing. Reports are kept for 30 days.",
  access: project("devices"),
  body: CreateImport,
  responses: { 201: { description: "The import waits for its file", schema: dataOf(Import) } },
  errors: ["quota-exceeded"],
  handle: async ({ sendRequest }, { caller: { projectId }, body, idempotent }) => {
    const { format, dry_run: dryRun = false } = body.import;
    return idempotent({
      newId: newImportId,
      perform: async ({ id }) =>
        created(await sendRequest(CreateImportRequest, { projectId, importId: id, format, dryRun })),
    });
  },
});

const listImports = defineRoute("listImports", "get /api/v1/imports", {
  summary: "List imports, oldest first",
  access: project("devices"),
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of imports", schema: pageOf(Import) } },
  handle: async ({ sendRequest }, { caller: { projectId }, query }) =>
    pageReply(await sendRequest(ListImports, { projectId, page: pageRequest(query) })),
});

const getImport = defineRoute("getImport", "get /api/v1/imports/{id}", {
  summary: "Read the progress and report of an import",
  description:
    "Once it is completed, it also lists the fields of the file that devices did not get, and those that have another name in the device.",
  access: project("devices"),
  params: { id: importParam },
  responses: { 200: { description: "The import", schema: dataOf(Import) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params }) =>
    ok(await sendRequest(GetImport, { projectId, importId: params.id })),
});

const listImportErrors = defineRoute("listImportErrors", "get /api/v1/imports/{id}/errors", {
  summary: "List the errors of an import, by line",
  description:
    "An import keeps 10,000 errors, of which at most 5,000 have the code `unsupported-platform`; `errors_left_out` of the import counts the others.",
  access: project("devices"),
  params: { id: importParam },
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of errors", schema: pageOf(ImportError) } },
  handle: async ({ sendRequest }, { caller: { projectId }, params, query }) =>
    pageReply(await sendRequest(ListImportErrors, { projectId, importId: params.id, page: pageRequest(query) })),
});

const uploadImport = defineRoute("uploadImport", "put /api/v1/imports/{id}/content", {
  summary: "Upload the file of an import",
  description:
    "NDJSON or CSV in UTF-8 by its Content-Type, also as gzip, of any size; `text/plain` for formats with one token or one XML element a line. A line has at most 64 KiB, and 200 columns in CSV, separated by `,`, `;` or tabs. Herald reads no faster than it processes. The response comes when all lines are stored; they may still be processed then. After a broken connection, send the whole file again with `after_line` = the import's `lines_stored`. A line that cannot be imported becomes an error of the import and does not stop the others.",
  access: project("devices"),
  params: { id: importParam },
  query: ImportContentQuery,
  upload: uploadTypes,
  responses: { 200: { description: "The whole file is stored", schema: dataOf(Import) } },
  errors: ["import-completed", "import-position-mismatch", "malformed-request"],
  handle: async (
    { sendRequest, acquireUpload, prepareChunk, limits, now },
    { caller, params, query, message, recheck },
  ) => {
    const { projectId } = caller;
    const one = { projectId, importId: params.id };
    const release = acquireUpload(shareOwner(caller));
    try {
      const { status, lines_stored: stored } = await sendRequest(GetImport, one);
      const isCsv = isCsvUpload(message);
      if (status !== "uploading")
        throw new HeraldError("import-completed", "id: the import has its whole file; start another one");
      const { after_line: afterLine = 0 } = query;
      if (afterLine !== stored)
        throw new HeraldError(
          "import-position-mismatch",
          `after_line: must be ${stored}, the number of lines that Herald has stored; send the whole file, it skips those lines`,
        );
      if (afterLine > 0) await limits.countUpload(params.id);
      const watch = watchUpload(message, recheck);
      const { isGone } = watch;
      const spend = createSpend((bytes) => limits.countImported(projectId, bytes), isGone);
      await storeLines(splitLines(readUpload(message, watch), isCsv, spend), {
        ...one,
        isCsv,
        afterLine,
        now,
        isGone,
        prepare: prepareChunk,
      }).finally(watch.stop);
      return ok(await sendRequest(GetImport, one));
    } finally {
      release();
    }
  },
});

export const importRoutes = [createImport, listImports, getImport, listImportErrors, uploadImport];
