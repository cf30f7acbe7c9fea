import { readFile } from "node:fs/promises";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { extname, join } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const undefinedIfMissing = (error: unknown): undefined => {
  if ((error as { code?: string }).code !== "ENOENT") throw error;
};

/** The files that `npm run build` wrote into a folder. Those that may change while the gateway runs are read for each request. */
export const builtFiles = (folder: string, mayChange: (name: string) => boolean = () => false) => {
  /** A slow reader holds a reference to a file, not a copy. */
  const kept = new Map<string, Buffer>();

  const read = async (name: string): Promise<Buffer | undefined> => {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const content = await readFile(join(folder, name)).catch(undefinedIfMissing);
    if (content !== undefined && !mayChange(name)) kept.set(name, content);
    return content;
  };

  /** Sends a file, compressed where the client takes it. Returns false if there is none of this name. */
  const send = async (
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    headers: OutgoingHttpHeaders,
  ): Promise<boolean> => {
    const gzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
    const packed = gzip ? await read(`${name}.gz`) : undefined;
    const content = packed ?? (await read(name));
    if (content === undefined) return false;
    response.writeHead(200, {
      ...headers,
      "content-type": types[extname(name)] ?? "application/octet-stream",
      "content-length": content.length,
      vary: "accept-encoding",
      ...(packed !== undefined && { "content-encoding": "gzip" }),
    });
    response.end(content);
    return true;
  };

  return { read, send };
};
