import type { Response, Router } from "express";
import type { Route } from "../http/route.ts";
import { describeRoutes } from "../openapi/describe-routes.ts";
import { pagePolicy } from "./html.ts";
import { renderErrors } from "./render-errors.ts";
import { type ApiDocument, renderReference } from "./render-reference.ts";

/** Long enough to be quick to click through, short enough that an upgrade shows. */
const cache = "public, max-age=300";

const sendPage = (response: Response, html: string): void => {
  response.set({ "content-security-policy": pagePolicy, "cache-control": cache }).type("html").send(html);
};

/** Adds `/openapi.json`, `/docs` and `/docs/errors`: made once, from the routes. */
export const mountDocs = (router: Router, routes: readonly Route[]): void => {
  const document = describeRoutes(routes);
  const text = JSON.stringify(document);
  const reference = renderReference(document as unknown as ApiDocument);
  const errors = renderErrors();
  router.get("/openapi.json", (_request, response) => {
    // Tools in browsers read it too, and there is nothing secret in it.
    response.set({ "access-control-allow-origin": "*", "cache-control": cache }).type("json").send(text);
  });
  router.get("/docs", (_request, response) => sendPage(response, reference));
  router.get("/docs/errors", (_request, response) => sendPage(response, errors));
};
