import type { Request, Response } from "express";
import type { Route } from "../http/route.ts";
import { describeEvents } from "./describe-events.ts";
import { describeRoutes } from "./describe-routes.ts";
import { type ApiDocument, renderErrors, renderEvents, renderReference } from "./render-reference.ts";
import { pagePolicy } from "./render-schema.ts";

/** Long enough to click through the pages quickly, short enough that an upgrade shows soon. */
const cache = "public, max-age=300";

/** Tools in browsers read the JSON documents too, and they contain nothing secret. */
const headers = {
  json: { "access-control-allow-origin": "*", "cache-control": cache },
  html: { "content-security-policy": pagePolicy, "cache-control": cache },
};

type Router = { get(path: string, handler: (request: Request, response: Response) => void): void };

/**
 * Adds `/openapi.json`, `/asyncapi.json`, `/docs`, `/docs/errors` and `/docs/events`. Each is made from routes and contracts on its first
 * request, and kept.
 */
export const mountDocs = (router: Router, routes: readonly Route[]): void => {
  const add = (path: string, type: keyof typeof headers, make: () => string) => {
    let made: Buffer | undefined;
    router.get(path, (_request, response) => {
      // Made once: a slow reader holds a reference to the buffer, not a copy.
      made ??= Buffer.from(make());
      response.set(headers[type]).type(type).send(made);
    });
  };
  let document: ReturnType<typeof describeRoutes> | undefined;
  const describe = () => (document ??= describeRoutes(routes));
  add("/openapi.json", "json", () => JSON.stringify(describe()));
  add("/asyncapi.json", "json", () => JSON.stringify(describeEvents()));
  add("/docs", "html", () => renderReference(describe() as unknown as ApiDocument));
  add("/docs/errors", "html", renderErrors);
  add("/docs/events", "html", renderEvents);
};
