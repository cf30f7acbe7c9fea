import type { Request, Response } from "express";
import { describeEvents } from "../asyncapi/describe-events.ts";
import type { Route } from "../http/route.ts";
import { describeRoutes } from "../openapi/describe-routes.ts";
import { pagePolicy } from "./html.ts";
import { renderErrors } from "./render-errors.ts";
import { renderEvents } from "./render-events.ts";
import { type ApiDocument, renderReference } from "./render-reference.ts";

/** Long enough to be quick to click through, short enough that an upgrade shows. */
const cache = "public, max-age=300";

const once = <Value>(make: () => Value): (() => Value) => {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
};

/** A slow reader holds a reference to it, not a copy. */
const made = (text: string): Buffer => Buffer.from(text);

const sendPage = (response: Response, html: Buffer): void => {
  response.set({ "content-security-policy": pagePolicy, "cache-control": cache }).type("html").send(html);
};

type Router = { get(path: string, handler: (request: Request, response: Response) => void): void };

/**
 * Adds `/openapi.json`, `/asyncapi.json`, `/docs`, `/docs/errors` and `/docs/events`: each is made from routes and contracts when it is
 * first asked for, and kept.
 */
export const mountDocs = (router: Router, routes: readonly Route[]): void => {
  const document = once(() => describeRoutes(routes));
  const text = once(() => made(JSON.stringify(document())));
  const reference = once(() => made(renderReference(document() as unknown as ApiDocument)));
  const errors = once(() => made(renderErrors()));
  const eventsText = once(() => made(JSON.stringify(describeEvents())));
  const catalogue = once(() => made(renderEvents()));
  router.get("/openapi.json", (_request, response) => {
    // Tools in browsers read it too, and there is nothing secret in it.
    response.set({ "access-control-allow-origin": "*", "cache-control": cache }).type("json").send(text());
  });
  router.get("/asyncapi.json", (_request, response) => {
    response.set({ "access-control-allow-origin": "*", "cache-control": cache }).type("json").send(eventsText());
  });
  router.get("/docs", (_request, response) => sendPage(response, reference()));
  router.get("/docs/errors", (_request, response) => sendPage(response, errors()));
  router.get("/docs/events", (_request, response) => sendPage(response, catalogue()));
};
