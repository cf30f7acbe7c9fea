import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { HeraldError, type HttpRoute } from "@herald/kit";
import { sendBuilt } from "./send-built.ts";

/** The folder into which `npm run build` writes the documentation, beside the program that serves it. */
export const builtDocs = join(import.meta.dirname, "docs");

/** Long enough to click through the pages quickly, short enough that an upgrade shows soon. */
const cacheControl = "public, max-age=300";
const strictest = "default-src 'none'";

/**
 * `/openapi.json`, `/asyncapi.json`, `/docs`, `/docs/errors` and `/docs/events`, from the folder's files of these names. `count` counts a
 * request without a credential and may refuse it.
 */
export const docsRoutes = (folder: string, count: (request: IncomingMessage) => Promise<void>): HttpRoute[] => {
  /** Tools in browsers read the JSON documents too, and they contain nothing secret. A page's policy names its own style and script. */
  const headersOf = async (name: string) => {
    if (name.endsWith(".json")) return { "access-control-allow-origin": "*" };
    return { "content-security-policy": await readFile(join(folder, "policy.txt"), "utf8").catch(() => strictest) };
  };

  return ["openapi.json", "asyncapi.json", "docs", "docs/errors", "docs/events"].map((path) => ({
    method: "GET",
    pattern: `/${path}`,
    serve: async (request, response) => {
      await count(request);
      const name = path.endsWith(".json") ? path : `${path}.html`;
      const headers = { ...(await headersOf(name)), "cache-control": cacheControl };
      if (!(await sendBuilt(request, response, { folder, name, headers })))
        throw new HeraldError("route-not-found", "path: the documentation is not built; `npm run build` makes it");
    },
  }));
};
