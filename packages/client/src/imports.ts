import type { Import, ImportError, NewImport } from "./api-types.ts";
import { HeraldError } from "./error.ts";
import {
  backoffMs,
  type CallOptions,
  type FileBody,
  type Http,
  isUnavailable,
  type PostOptions,
  path,
  sleep,
} from "./http.ts";
import { type ListOptions, list } from "./list.ts";

export type UploadOptions = CallOptions & {
  /** Default: `application/x-ndjson`. `text/csv` for CSV, `text/plain` for one token or one XML element a line. Gzip needs no mark. */
  readonly contentType?: string | undefined;
  /** How often a broken upload continues without a new line. Default: 5. */
  readonly maxRetries?: number | undefined;
};

/** Broken on the way, or refused for a moment. */
const mayContinue = (error: unknown): error is HeraldError =>
  error instanceof HeraldError && (isUnavailable(error) || error.status === 429 || error.slug === "malformed-request");

export const createImports = (http: Http) => {
  const get = (id: string, options?: CallOptions) => http.get<Import>(path`/imports/${id}`, options);
  return {
    /** Starts an import; upload its file next. */
    create: (wanted: NewImport, options?: PostOptions) => http.post<Import>("/imports", options, { import: wanted }),
    get,
    list: (options?: ListOptions) => list<Import>(http, "/imports", options),
    /**
     * Uploads the file of an import, from where an earlier upload broke, and continues by itself when a connection breaks: `open` returns the whole file
     * each time. Resolves when Herald has stored all lines; it may still process them.
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
    /** Why lines were refused, by line. */
    errors: (id: string, options?: ListOptions) => list<ImportError>(http, path`/imports/${id}/errors`, options),
  };
};
