import { CreateImport, Import, ImportContentQuery, importRequests, newImportId } from "@herald/contracts";
import { HeraldError, positionMismatch } from "@herald/kit";
import { project, shareOwner } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { importLines } from "../uploads/import-lines.ts";
import { isCsvUpload, uploadTypes } from "../uploads/read-upload.ts";
import { storeUpload } from "../uploads/store-upload.ts";

export const importRoutes = [
  forwardRoute("createImport", "post /api/v1/imports", {
    summary: "Start an import of devices from a file",
    description:
      "Then upload the file with `PUT /imports/{id}/content`. An import creates and updates devices as `PUT /devices` does: without credentials, and a repeat changes nothing. Reports are kept for 30 days.",
    access: project("devices"),
    body: CreateImport,
    forward: importRequests.create,
    newId: { importId: newImportId },
    add: ({ body }) => ({ format: body.import.format, dryRun: body.import.dry_run ?? false }),
    status: 201,
    response: "The import waits for its file",
    errors: ["quota-exceeded"],
  }),
  forwardRoute("listImports", "get /api/v1/imports", {
    summary: "List imports, oldest first",
    access: project("devices"),
    forward: importRequests.list,
    response: "A page of imports",
  }),
  forwardRoute("getImport", "get /api/v1/imports/{id}", {
    summary: "Read the progress and report of an import",
    description:
      "Once it is completed, it also lists the fields of the file that devices did not get, and those that have another name in the device.",
    access: project("devices"),
    forward: importRequests.get,
    response: "The import",
  }),
  forwardRoute("listImportErrors", "get /api/v1/imports/{id}/errors", {
    summary: "List the errors of an import, by line",
    description:
      "An import keeps 10,000 errors, of which at most 5,000 have the code `unsupported-platform`; `errors_left_out` of the import counts the others.",
    access: project("devices"),
    forward: importRequests.errors,
    response: "A page of errors",
  }),
  defineRoute("uploadImport", "put /api/v1/imports/{id}/content", {
    summary: "Upload the file of an import",
    description:
      "NDJSON or CSV in UTF-8 by its Content-Type, also as gzip, of any size; `text/plain` for formats with one token or one XML element a line. A line has at most 64 KiB, and 200 columns in CSV, separated by `,`, `;` or tabs. Herald reads no faster than it processes. The response comes when all lines are stored; they may still be processed then. After a broken connection, send the whole file again with `after_line` = the import's `lines_stored`. A line that cannot be imported becomes an error of the import and does not stop the others.",
    access: project("devices"),
    query: ImportContentQuery,
    upload: uploadTypes,
    responses: { 200: { description: "The whole file is stored", schema: dataOf(Import) } },
    errors: ["import-completed", "import-position-mismatch", "malformed-request"],
    handle: async (deps, { caller, params, query, message, recheck: check }) => {
      const { sendRequest, acquireUpload, storeImportChunk: store, limits, now } = deps;
      const { projectId } = caller;
      const one = { projectId, importId: params.id };
      const release = acquireUpload(shareOwner(caller));
      try {
        const { status, lines_stored: stored } = await sendRequest(importRequests.get, one);
        const isCsv = isCsvUpload(message);
        if (status !== "uploading")
          throw new HeraldError("import-completed", "id: the import has its whole file; start another one");
        const { after_line: afterLine = 0 } = query;
        if (afterLine !== stored) throw positionMismatch(stored);
        if (afterLine > 0) await limits.countUpload(params.id);
        const kind = importLines({ ...one, store, now });
        await storeUpload(deps, { projectId, message, isCsv, afterLine, check, kind });
        return ok(await sendRequest(importRequests.get, one));
      } finally {
        release();
      }
    },
  }),
];
