import type { IncomingMessage, ServerResponse } from "node:http";
import type { Route } from "./route.ts";

/** How long a browser may remember a preflight's answer: two hours is the most that Chromium honours. */
const preflightSeconds = 7_200;

const exposed = "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/** What a browser is told that asks whether it may call a path by these methods. */
export const preflightHeaders = (methods: readonly string[]): Readonly<Record<string, string>> => ({
  "access-control-allow-methods": methods.join(", "),
  "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id, traceparent, tracestate",
  "access-control-max-age": String(preflightSeconds),
});

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
