import { type Import, importRequests } from "@herald/contracts";
import { at, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

/** Registry's imports, before any line is applied. */
export const serveImports = (serve: Serve): void => {
  const imports = new Map<string, Owned<Import>>();
  serve(importRequests.create, ({ projectId, importId, format, dryRun }) => {
    const none = {
      lines_stored: 0,
      lines_processed: 0,
      created: 0,
      updated: 0,
      unchanged: 0,
      refused: 0,
      unsupported: 0,
    };
    const value: Import = {
      id: importId,
      format,
      dry_run: dryRun,
      status: "uploading",
      ...none,
      lines_with: { user_id: 0, time_zone: 0, locale: 0, last_seen_at: 0 },
      errors_left_out: 0,
      created_at: at(),
    };
    imports.set(importId, { projectId, value });
    return value;
  });
  serve(importRequests.get, (data) => owned(imports, data, data.importId, "import-not-found").value);
  serve(importRequests.list, ({ projectId, page }) => pageOf(rows(imports, projectId), page));
  serve(importRequests.errors, (data) => {
    owned(imports, data, data.importId, "import-not-found");
    return { data: [], next: null };
  });
};
