import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { HeraldError, type HttpRoute } from "@herald/kit";
import { sendBuilt } from "./send-built.ts";

/** The folder into which `npm run build` writes the console, beside the program that serves it. */
export const builtConsole = join(import.meta.dirname, "console");

/** The console loads nothing from other origins, runs no inline script and cannot be framed. Mantine sets styles on elements. */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const fileName = /^(?:assets\/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\.[a-z0-9]+$/;

/**
 * Serves the console's files below `/console`. Every other path below it gets `index.html`, which renders the page in the browser. `count`
 * counts a request without a credential and may refuse it.
 */
export const consoleRoutes = (folder: string, count: (request: IncomingMessage) => Promise<void>): HttpRoute[] => {
  const serve = async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    await count(request);
    const asked = path.replace(/^\/console\/?/, "");
    const name = fileName.test(asked) ? asked : "index.html";
    const headers = {
      "content-security-policy": consolePolicy,
      // Names of assets contain a hash of their content.
      "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
    };
    if (await sendBuilt(request, response, { folder, name, headers })) return;
    const why = name === "index.html" ? "the console is not built; `npm run build` makes it" : "file not found";
    throw new HeraldError("route-not-found", `path: ${why}`);
  };

  return ["/console", "/console/*"].map((pattern) => ({
    method: "GET",
    pattern,
    serve: (request, response, { path }) => serve(request, response, path),
  }));
};
