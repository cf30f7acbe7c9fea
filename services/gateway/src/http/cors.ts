import type { IncomingMessage, ServerResponse } from "node:http";
import type { Router } from "express";
import { expressPath, type Route } from "./route.ts";

/** How long a browser may remember a preflight's answer: two hours is the most that Chromium honours. */
const preflightSeconds = 7_200;

const exposed = "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/** Answers the preflights of the routes that browsers call. */
export const mountPreflights = (router: Router, routes: readonly Route[]): void => {
  for (const [path, methods] of Map.groupBy(
    routes.filter((route) => route.cors),
    expressPath,
  )) {
    const allowed = methods.map((route) => route.method.toUpperCase()).join(", ");
    router.options(path, (_request, response) => {
      response.set({
        "access-control-allow-methods": allowed,
        "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id, traceparent, tracestate",
        "access-control-max-age": String(preflightSeconds),
      });
      response.status(204).end();
    });
  }
};

/**
 * Lets pages of any origin read what the client's routes answer, problems included, which is why it stands before
 * everything else. There are no cookies, so an origin proves nothing and `*` gives nothing away.
 */
export const allowBrowsers = (
  routes: readonly Route[],
  next: (request: IncomingMessage, response: ServerResponse) => void,
): ((request: IncomingMessage, response: ServerResponse) => void) => {
  const paths = routes.filter((route) => route.cors).map((route) => route.path.replaceAll(/\{\w+\}/g, "[^/?]+"));
  const open = new RegExp(`^(?:${[...new Set(paths)].join("|")})/?(?:\\?|$)`);
  return (request, response) => {
    if (open.test(request.url ?? "")) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-expose-headers", exposed);
    }
    next(request, response);
  };
};
