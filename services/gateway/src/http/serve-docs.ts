import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { HeraldError, type HttpRoute } from "@herald/kit";
import { builtFiles } from "./built-files.ts";

/** The folder into which `npm run build` writes the documentation, beside the program that serves it. */
export const builtDocs = join(import.meta.dirname, "docs");

/** Long enough to click through the pages quickly, short enough that an upgrade shows soon. */
const cache = { "cache-control": "public, max-age=300" };

/**
 * `/openapi.json`, `/asyncapi.json`, `/docs`, `/docs/errors` and `/docs/events`, from the folder's files of these names. `count` counts a
 * request without a credential and may refuse it.
 */
export const docsRoutes = (folder: string, count: (request: IncomingMessage) => Promise<void>): HttpRoute[] => {
  const files = builtFiles(folder);
  /** Tools in browsers read the JSON documents too, and they contain nothing secret. */
  const headersOf = async (name: string) =>
    name.endsWith(".json")
      ? { ...cache, "access-control-allow-origin": "*" }
      : { ...cache, "content-security-policy": String((await files.read("policy.txt")) ?? "default-src 'none'") };

  return ["/openapi.json", "/asyncapi.json", "/docs", "/docs/errors", "/docs/events"].map((pattern) => ({
    method: "GET",
    pattern,
    serve: async (request, response) => {
      await count(request);
      const name = pattern.endsWith(".json") ? pattern : `${pattern}.html`;
      if (!(await files.send(request, response, name, await headersOf(name))))
        throw new HeraldError("route-not-found", "path: the documentation is not built; `npm run build` makes it");
    },
  }));
};
