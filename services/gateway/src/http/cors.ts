import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpRoute } from "@herald/kit";
import { type Route, routePattern } from "./route.ts";

/** How long a browser may cache a preflight: two hours is Chromium's maximum. */
const preflightSeconds = 7_200;

const exposed = "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/**
 * Middleware that lets pages of any origin read the responses of routes for browsers, problems included. `*` is safe because there are
 * no cookies.
 */
export const allowBrowsers = (routes: readonly Route[]) => {
  const paths = routes.filter(({ cors }) => cors).map(({ path }) => path.replaceAll(/\{\w+\}/g, "[^/?]+"));
  const open = new RegExp(`^(?:${[...new Set(paths)].join("|")})/?(?:\\?|$)`);
  return ({ url = "" }: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (open.test(url)) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-expose-headers", exposed);
    }
    next();
  };
};

/** Answers preflights. They are not rate limited: a refusal would cost as much, and reporting an open waits for them. */
export const preflightRoutes = (routes: readonly Route[]): HttpRoute[] =>
  [
    ...Map.groupBy(
      routes.filter(({ cors }) => cors),
      routePattern,
    ),
  ].map(([pattern, own]) => {
    const headers = {
      "access-control-allow-methods": own.map(({ method }) => method.toUpperCase()).join(", "),
      "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id, traceparent, tracestate",
      "access-control-max-age": String(preflightSeconds),
    };
    return {
      method: "OPTIONS",
      pattern,
      serve: async (_request, response, { allow }) => void response.writeHead(204, { allow, ...headers }).end(),
    };
  });
