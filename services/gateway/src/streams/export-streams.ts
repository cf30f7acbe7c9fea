import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { createGzip } from "node:zlib";
import { type ExportFormat, toCsvText } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import type { z } from "zod";
import type { ShareOwner } from "../auth/caller.ts";
import { createResponseStreams, streamEnded, waitForDrain } from "../http/response-streams.ts";
import type { SlotLimits } from "../limits/project-limits.ts";
import { createSpeedLimit } from "../limits/speed-limit.ts";

/** Some rows as JSON, and the id after which the next page begins; null after the last page. */
export type ExportPage = { readonly rows: readonly string[]; readonly next: string | null };

export type ExportRequest = {
  readonly owner: ShareOwner;
  readonly format: RowFormat;
  readonly gzip: boolean;
  /** The export begins after this id; absent: at the first row. */
  readonly after: string | undefined;
  readonly read: (after: string | undefined, limit: number) => Promise<ExportPage>;
  /** Throws when the caller is no longer allowed to read: a token can be revoked while its export runs. */
  readonly recheck: () => Promise<unknown>;
};

type Deps = {
  readonly log: Logger;
  readonly limits: SlotLimits;
  /** A client that reads nothing for this long is disconnected; it may resume. */
  readonly drainTimeoutMs: number;
};

/** Rows of the first page, and the maximum. After a page that a service cut because its rows are large, the next is small too. */
const firstRows = 200;
const maxRows = 1_000;
/** Size of one write: for a slow reader, one such chunk waits in the socket and two pages in memory. */
const chunkBytes = 65_536;
/** Costs half the CPU of the default level, for a tenth more bytes. */
const gzipLevel = 2;

/** A page as texts of about {@link chunkBytes} each. */
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

/** Streams rows page by page, as fast as the client reads. Holds the page being written and the next one. */
export const createExportStreams = ({ log, limits, drainTimeoutMs }: Deps) => {
  const streams = createResponseStreams({ limits, what: "exports", whenStopped: "resume at another" });

  const writePages = async (
    { format, after, read, recheck }: ExportRequest,
    first: ExportPage,
    out: Writable,
    drained: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> => {
    let page = first;
    let limit = firstRows;
    let head = after === undefined ? format.head : "";
    for (;;) {
      const { next, rows } = page;
      if (rows.length >= limit) limit = Math.min(maxRows, limit * 2);
      else if (rows.length > 0) limit = Math.max(1, Math.min(limit, rows.length * 2));
      // The next page is read while this one is written.
      const following = next === null ? undefined : recheck().then(() => read(next, limit));
      following?.catch(() => undefined);
      for (const text of chunksOf(page, format, head)) {
        if (signal.aborted) throw streamEnded;
        if (!out.write(text)) await drained();
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
    const gzip = request.gzip ? createGzip({ level: gzipLevel }) : undefined;
    gzip?.pipe(response);
    const out = gzip ?? response;
    const speed = createSpeedLimit(() => streamEnded);
    let written = 0;
    /** What the client got since the last call. Of well compressed rows a slow reader needs few bytes to look busy. */
    const bytesWritten = () => {
      const before = written;
      written = response.socket?.bytesWritten ?? before;
      return written - before;
    };
    const drained = () => speed.wait(waitForDrain(out, drainTimeoutMs, signal), bytesWritten);
    try {
      await writePages(request, first, out, drained, signal);
      out.end();
    } catch (error) {
      if (error !== streamEnded) {
        const level = error instanceof HeraldError ? "info" : "error";
        log[level]({ err: error, owner: request.owner }, "an export was cut");
      }
      // Cuts the connection: a missing end of the body shows the client that rows are missing.
      gzip?.destroy();
      response.destroy();
    }
  };

  return {
    /**
     * Reads the first page, and returns a function that writes the export. That function cuts the connection on failure, so that the client
     * sees that rows are missing. Throws rate-limited, and the errors of `read`.
     */
    open: (request: ExportRequest) =>
      streams.open(request.owner, async () => {
        const first = await request.read(request.after, firstRows);
        return (response, signal) => run(request, first, response, signal);
      }),
    /** The project's open exports in this process. */
    openOf: streams.openOf,
    /** Cuts all exports. Clients resume them at another gateway. */
    stop: streams.stop,
  };
};

/** How rows become text. */
export type RowFormat = {
  readonly contentType: string;
  /** Before the first row of an export; not sent again when it is resumed. */
  readonly head: string;
  /** One row, given as JSON, with its line end. */
  readonly line: (row: string) => string;
};

const ndjson: RowFormat = {
  contentType: "application/x-ndjson; charset=utf-8",
  head: "",
  line: (row) => `${row}\n`,
};

const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** Matches cells without characters that CSV or a spreadsheet treats specially, so most cells skip the slower check. */
const plain = /^[A-Za-z0-9][^",;\t\r\n]*$/;

/** A cell as in RFC 4180. Lists and objects are JSON. */
const cell = (value: unknown): string => {
  const own = textOf(value);
  if (own === "" || plain.test(own)) return own;
  const text = toCsvText(own);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** One column for each field of the rows' schema. */
const csv = (row: z.ZodObject): RowFormat => {
  const columns = Object.keys(row.shape);
  return {
    contentType: "text/csv; charset=utf-8",
    head: `${columns.join(",")}\r\n`,
    line: (row) => {
      const values = JSON.parse(row) as Record<string, unknown>;
      return `${columns.map((name) => cell(values[name])).join(",")}\r\n`;
    },
  };
};

export const rowFormat = (format: ExportFormat, row: z.ZodObject): RowFormat => (format === "csv" ? csv(row) : ndjson);

/** The quality of a name in a header such as `Accept`; 0 if it is absent or refused. */
const qualityOf = (header: string, name: string): number => {
  for (const part of header.split(",")) {
    const [value = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    if (value !== name) continue;
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0;
  }
  return 0;
};

/** The format that the client prefers; NDJSON unless it asks for CSV. */
export const preferredFormat = (accept = ""): ExportFormat =>
  qualityOf(accept, "text/csv") > qualityOf(accept, "application/x-ndjson") ? "csv" : "ndjson";

export const acceptsGzip = (acceptEncoding = ""): boolean => qualityOf(acceptEncoding, "gzip") > 0;
