import type { Import, LineError, NewImport } from "./api-types.ts";
import { type CallOptions, type FileBody, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list } from "./list.ts";
import { resumeUpload, type UploadOptions } from "./uploads.ts";

export const createImports = (http: Http) => {
  const get = (id: string, options?: CallOptions) => http.get<Import>(path`/imports/${id}`, options);
  return {
    /** Starts an import; upload its file next. */
    create: (wanted: NewImport, options?: PostOptions) => http.post<Import>("/imports", options, { import: wanted }),
    get,
    list: (options?: ListOptions) => list<Import>(http, "/imports", options),
    /**
     * Uploads the file of an import, and resumes a broken upload after the last stored line. `open` must return the whole file each time.
     * Resolves when Herald has stored all lines; it may still process them.
     */
    upload: (id: string, open: () => FileBody, options: UploadOptions = {}): Promise<Import> =>
      resumeUpload<Import>(http, open, options, {
        target: path`/imports/${id}/content`,
        read: (signal) => get(id, { signal }),
        isWhole: ({ status }) => status === "processing" || status === "completed",
      }),
    /** The refused lines, each with the reason. */
    errors: (id: string, options?: ListOptions) => list<LineError>(http, path`/imports/${id}/errors`, options),
  };
};
