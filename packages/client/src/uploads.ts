import { HeraldError } from "./error.ts";
import { backoffMs, type CallOptions, type FileBody, type Http, isTemporary, sleep } from "./http.ts";

export type UploadOptions = CallOptions & {
  /** Default: `application/x-ndjson`. `text/csv` for CSV, `text/plain` for one token or XML element per line. Herald detects gzip. */
  readonly contentType?: string | undefined;
  /** How often a broken upload is resumed without storing a new line. Default: 5. */
  readonly maxRetries?: number | undefined;
};

/** Whether an upload may be resumed: the connection broke, or Herald is busy or unavailable. */
const mayContinue = (error: unknown): error is HeraldError =>
  error instanceof HeraldError && (isTemporary(error) || error.status === 429 || error.slug === "malformed-request");

/** What an upload is resumed by: its file's route, and the lines that Herald has stored. */
type Resumed<State> = {
  readonly target: string;
  readonly read: (signal: AbortSignal | undefined) => Promise<State>;
  readonly isWhole: (state: State) => boolean;
};

/** Uploads a file, and resumes it after the last stored line. `open` must return the whole file each time. */
export const resumeUpload = async <State extends { lines_stored: number }>(
  http: Http,
  open: () => FileBody,
  { signal, contentType = "application/x-ndjson", maxRetries = 5 }: UploadOptions,
  { target, read, isWhole }: Resumed<State>,
): Promise<State> => {
  let stored = -1;
  for (let tries = 1; ; tries++) {
    const state = await read(signal);
    if (isWhole(state)) return state;
    const line = state.lines_stored;
    if (line > stored) tries = 1;
    stored = line;
    try {
      const headers = { "content-type": contentType };
      return await http.upload<State>(target, open(), { query: { afterLine: line }, headers, signal });
    } catch (error) {
      if (!mayContinue(error) || tries > maxRetries) throw error;
      await sleep(backoffMs(tries, error.retryAfter), signal);
    }
  }
};
