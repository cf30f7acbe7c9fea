import type { Import, ImportError, NewImport } from "./api-types.ts";
import { HeraldError } from "./error.ts";
import {
  backoffMs,
  type CallOptions,
  type FileBody,
  type Http,
  isTemporary,
  type PostOptions,
  path,
  sleep,
} from "./http.ts";
import { type ListOptions, list } from "./list.ts";

export type UploadOptions = CallOptions & {
  /** Default: `application/x-ndjson`. `text/csv` for CSV, `text/plain` for one token or XML element per line. Herald detects gzip. */
  readonly contentType?: string | undefined;
  /** How often a broken upload is resumed without storing a new line. Default: 5. */
  readonly maxRetries?: number | undefined;
};

/** Whether an upload may be resumed: the connection broke, or Herald is busy or unavailable. */
const mayContinue = (error: unknown): error is HeraldError =>
  error instanceof HeraldError && (isTemporary(error) || error.status === 429 || error.slug === "malformed-request");

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
    upload: async (id: string, open: () => FileBody, options: UploadOptions = {}): Promise<Import> => {
      const { signal, contentType = "application/x-ndjson", maxRetries = 5 } = options;
      let stored = -1;
      for (let tries = 1; ; tries++) {
        const { status, lines_stored: line, ...rest } = await get(id, { signal });
        if (status === "processing" || status === "completed") return { status, lines_stored: line, ...rest };
        if (line > stored) tries = 1;
        stored = line;
        try {
          const query = { afterLine: line };
          const headers = { "content-type": contentType };
          return await http.upload<Import>(path`/imports/${id}/content`, open(), { query, headers, signal });
        } catch (error) {
          if (!mayContinue(error) || tries > maxRetries) throw error;
          await sleep(backoffMs(tries, error.retryAfter), signal);
        }
      }
    },
    /** The refused lines, each with the reason. */
    errors: (id: string, options?: ListOptions) => list<ImportError>(http, path`/imports/${id}/errors`, options),
  };
};
