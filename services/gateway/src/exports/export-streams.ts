import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { constants, createGzip } from "node:zlib";
import type { ProjectId } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import { createResponseStreams } from "../http/response-streams.ts";
import { streamEnded, waitForDrain } from "../http/wait-for-drain.ts";
import type { RowFormat } from "./format-rows.ts";

/** Some rows as JSON, and the id after which the next ones are; null after the last. */
export type ExportPage = { readonly rows: readonly string[]; readonly next: string | null };

export type ExportRequest = {
  readonly projectId: ProjectId;
  readonly format: RowFormat;
  readonly gzip: boolean;
  /** Where it begins; absent: at the first row. */
  readonly after: string | undefined;
  readonly read: (after: string | undefined, limit: number) => Promise<ExportPage>;
  /** Throws when the caller is no longer allowed to read: a token can be revoked while its export runs. */
  readonly recheck: () => Promise<unknown>;
};

export type ExportStreams = {
  /**
   * Reads the first page, and returns a function that writes the export. The function cuts the connection when something fails, so that
   * the client sees that rows are missing. Throws rate-limited, and what reading throws.
   */
  readonly open: (request: ExportRequest) => Promise<(response: ServerResponse) => Promise<void>>;
  /** Cuts all exports. Clients resume them at another gateway. */
  readonly stop: () => Promise<void>;
  /** How many of the project are open here. */
  readonly openOf: (projectId: ProjectId) => number;
};

type Deps = {
  readonly log: Logger;
  readonly limits: { readonly perProject: number; readonly total: number };
  /** A client that reads nothing for this long is disconnected; it may resume. */
  readonly drainTimeoutMs: number;
};

/** Rows asked for at first, and at most. A page that a service has cut because its rows are large makes the next one small, too. */
const firstRows = 200;
const maxRows = 1_000;
/** What is written at a time: a slow reader has one of these in its socket, and two pages behind it. */
const chunkBytes = 65_536;
/** Half of the work of the default, for a tenth more bytes. */
const gzipLevel = 2;

/** The texts of a page, each about {@link chunkBytes}. */
function* chunksOf(page: ExportPage, { line }: RowFormat, head: string): Generator<string> {
  let text = head;
  for (const row of page.rows) {
    text += line(row);
    if (text.length < chunkBytes) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Streams rows page by page, as fast as the client reads. It holds the page that is written and the one after it. */
export const createExportStreams = ({ log, limits, drainTimeoutMs }: Deps): ExportStreams => {
  const streams = createResponseStreams({ limits, what: "exports", whenStopped: "resume at another" });

  const writePages = async (
    { format, after, read, recheck }: ExportRequest,
    first: ExportPage,
    out: Writable,
    signal: AbortSignal,
  ): Promise<void> => {
    let page = first;
    let limit = firstRows;
    let head = after === undefined ? format.head : "";
    for (;;) {
      const { next, rows } = page;
      if (rows.length >= limit) limit = Math.min(maxRows, limit * 2);
      else if (rows.length > 0) limit = Math.max(1, Math.min(limit, rows.length * 2));
      // Read while this page is written.
      const following = next === null ? undefined : recheck().then(() => read(next, limit));
      following?.catch(() => undefined);
      for (const text of chunksOf(page, format, head)) {
        if (signal.aborted) throw streamEnded;
        if (!out.write(text)) await waitForDrain(out, drainTimeoutMs, signal);
      }
      head = "";
      if (following === undefined) return;
      page = await following;
    }
  };

  const run = async (
    request: ExportRequest,
    first: ExportPage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> => {
    const gzip = request.gzip
      ? createGzip({ level: gzipLevel, strategy: constants.Z_DEFAULT_STRATEGY, flush: constants.Z_NO_FLUSH })
      : undefined;
    gzip?.pipe(response);
    const out = gzip ?? response;
    try {
      await writePages(request, first, out, signal);
      out.end();
    } catch (error) {
      if (error !== streamEnded) {
        const level = error instanceof HeraldError ? "info" : "error";
        log[level]({ err: error, projectId: request.projectId }, "an export was cut");
      }
      // Without the end of the body, the client knows that rows are missing.
      gzip?.destroy();
      response.destroy();
    }
  };

  return {
    open: (request) =>
      streams.open(request.projectId, async () => {
        const first = await request.read(request.after, firstRows);
        return (response, signal) => run(request, first, response, signal);
      }),
    openOf: streams.openOf,
    stop: streams.stop,
  };
};
