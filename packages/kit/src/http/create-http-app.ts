import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import { Socket } from "node:net";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import type { Health } from "../health.ts";
import { HeraldError, toProblem } from "../herald-error.ts";
import { observeRequests, outcomeOf } from "./observe-requests.ts";
import { type ServeRoutes, serveRoutes } from "./serve-routes.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

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
  // Express skips all middleware if it finds no path in the request target.
  return (request, response) =>
    (app as (...args: unknown[]) => void)(request, response, () =>
      observe(request, response, () => handleError(invalidTarget, response)),
    );
};

/**
 * Answers an error with problem details. Logs unexpected errors in full and answers them with 500. A response that has already begun cannot
 * become a problem, so its connection is closed.
 */
export const createErrorHandler =
  (log: Logger) =>
  (error: unknown, response: ServerResponse): void => {
    const { status, headers, body } = toProblem(error, String(response.getHeader("x-request-id")));
    const code = error instanceof HeraldError ? error.code : "internal";
    outcomeOf(response).code = code;
    if (code === "internal") log.error({ err: error }, "request failed");
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.statusCode = status;
    for (const name in headers) response.setHeader(name, headers[name] ?? "");
    response.end(`${JSON.stringify(body)}\n`);
  };

/** RFC 9112: exactly one Host. With two, a proxy and Herald could see different sites. */
export const requireHost = (
  { rawHeaders, httpVersionMinor }: IncomingMessage,
  _response: ServerResponse,
  next: (error?: unknown) => void,
): void => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && httpVersionMinor === 0)) next();
  else next(new HeraldError("malformed-request", "host: must be sent exactly once"));
};

/** Middleware that sets helmet's headers for an API. They are the same for each response, so helmet runs only once. */
export const setSecurityHeaders = () => {
  const sample = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })(sample.req, sample, (error) => {
    if (error) throw error;
  });
  const headers = Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const);
  return (_request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
};

/** Serves the probes of a service without other HTTP routes. Does not use express, which would need 15 MB for two paths. */
export const startHealthServer = (
  { routes }: Health,
  log: Logger,
  at: { readonly host: string; readonly port: number },
): Promise<HttpServer> => {
  const observe = observeRequests(log);
  const setHeaders = setSecurityHeaders();
  const handleError = createErrorHandler(log);
  const serve = serveRoutes(routes, { notFound: "must be /livez or /readyz" });
  return startHttp(
    (request, response) =>
      observe(request, response, () =>
        setHeaders(request, response, () =>
          requireHost(request, response, (error) => {
            const served = error === undefined ? serve(request, response) : Promise.reject(error);
            served.catch((reason) => handleError(reason, response));
          }),
        ),
      ),
    at,
  );
};
