import type { RequestListener } from "node:http";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { createErrorHandler } from "./handle-error.ts";
import { observeRequests } from "./observe-requests.ts";
import { requireHost } from "./require-host.ts";
import { setSecurityHeaders } from "./security-headers.ts";
import type { ServeRoutes } from "./serve-routes.ts";

/**
 * The express app of a JSON API: request ids, one log line, span and measurement per request, security headers, and problem details for
 * every error. `middleware` runs before the routes.
 */
export const createHttpApp = (log: Logger, routes: ServeRoutes, ...middleware: RequestHandler[]): RequestListener => {
  const handleError = createErrorHandler(log);
  const observe = observeRequests(log);
  const app = express();
  app.set("etag", false);
  app.disable("x-powered-by");
  app.use(observe, setSecurityHeaders(), ...middleware, requireHost);
  app.use((request, response) => routes(request, response));
  app.use(((error, _request, response, _next) => handleError(error, response)) satisfies ErrorRequestHandler);
  const invalidTarget = new HeraldError("malformed-request", "path: is not a valid request target");
  // Express skips all middleware where it finds no path in the request target.
  return (request, response) =>
    (app as (...args: unknown[]) => void)(request, response, () =>
      observe(request, response, () => handleError(invalidTarget, response)),
    );
};
