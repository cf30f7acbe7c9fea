import type { Request, Response } from "express";
import type { PublicPage } from "../http/http-routes.ts";
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

/**
 * `/openapi.json`, `/asyncapi.json`, `/docs`, `/docs/errors` and `/docs/events`. Each is made from routes and contracts on its first
 * request, and kept.
 */
export const docsPages = (routes: readonly Route[]): readonly PublicPage[] => {
  const page = (path: string, type: keyof typeof headers, make: () => string): PublicPage => {
    let made: Buffer | undefined;
    const render = (_request: Request, response: Response): void => {
      // Made once: a slow reader holds a reference to the buffer, not a copy.
      made ??= Buffer.from(make());
      response.set(headers[type]).type(type).send(made);
    };
    return { path, render };
  };
  let document: ReturnType<typeof describeRoutes> | undefined;
  const describe = () => (document ??= describeRoutes(routes));
  return [
    page("/openapi.json", "json", () => JSON.stringify(describe())),
    page("/asyncapi.json", "json", () => JSON.stringify(describeEvents())),
    page("/docs", "html", () => renderReference(describe() as unknown as ApiDocument)),
    page("/docs/errors", "html", renderErrors),
    page("/docs/events", "html", renderEvents),
  ];
};
