import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { HeraldError, type HttpRoute } from "@herald/kit";

/** The folder into which `npm run build` writes the console, beside the program that serves it. */
export const builtConsole = join(import.meta.dirname, "console");

/** The console loads nothing from other origins, runs no inline script and cannot be framed. Mantine sets styles on elements. */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const fileName = /^(?:assets\/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\.[a-z0-9]+$/;

const isMissing = (error: unknown): boolean => (error as { code?: string }).code === "ENOENT";

/**
 * Serves the console's files below `/console`. Every other path below it gets `index.html`, which renders the page in the browser. `count`
 * counts a request without a credential and may refuse it.
 */
export const consoleRoutes = (folder: string, count: (request: IncomingMessage) => Promise<void>): HttpRoute[] => {
  /** Names of assets contain a hash of their content, so cached files stay valid. A slow reader holds a reference, not a copy. */
  const assets = new Map<string, Buffer>();

  const read = async (name: string): Promise<Buffer> => {
    const known = assets.get(name);
    if (known) return known;
    const content = await readFile(join(folder, name));
    if (name.startsWith("assets/")) assets.set(name, content);
    return content;
  };

  const readFor = async (name: string, gzip: boolean): Promise<{ content: Buffer; encoding?: "gzip" }> => {
    if (gzip) {
      try {
        return { content: await read(`${name}.gz`), encoding: "gzip" };
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
    return { content: await read(name) };
  };

  const serve = async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    await count(request);
    const asked = path.replace(/^\/console\/?/, "");
    const name = fileName.test(asked) ? asked : "index.html";
    const gzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
    const found = await readFor(name, gzip).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
      const why = name === "index.html" ? "the console is not built; `npm run build` makes it" : "file not found";
      throw new HeraldError("route-not-found", `path: ${why}`);
    });
    response.writeHead(200, {
      "content-type": types[extname(name)] ?? "application/octet-stream",
      "content-length": found.content.length,
      "content-security-policy": consolePolicy,
      "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      vary: "accept-encoding",
      ...(found.encoding && { "content-encoding": found.encoding }),
    });
    response.end(found.content);
  };

  return ["/console", "/console/*"].map((pattern) => ({
    method: "GET",
    pattern,
    serve: (request, response, { path }) => serve(request, response, path),
  }));
};
