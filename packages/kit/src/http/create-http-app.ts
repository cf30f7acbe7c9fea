import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type ErrorRequestHandler, type Request, Router } from "express";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { parseSearch, queryOf } from "../parse-request.ts";
import { answeredWith, createAnswerError } from "./answer-error.ts";
import { createListener, type FoundRoute } from "./create-listener.ts";
import { jsonBody } from "./json-body.ts";
import { methodsOf, patternOf } from "./routes-of.ts";

/**
 * A body of 1,000 targets of 900 bytes each fits (a topic takes 30, an FCM token 170, a Web Push endpoint up to 500), and
 * with ids and headers it still fits one bus message, which is 1 MiB unless the broker is told otherwise.
 */
export const defaultBodyLimitBytes = 960 * 1024;

/** A route that a request leads to, found without express. */
export type DirectRoute = {
  /** As express would write it: `/api/v1/devices/:id`. */
  readonly pattern: string;
  /** Answers, or throws what is to be answered. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
};

export type HttpAppOptions = {
  readonly log: Logger;
  /** After decompression; 960 KiB by default. `by-route`: routes read bodies themselves, by `createReadBody`. */
  readonly bodyLimitBytes?: number | "by-route";
  /** Looked at before express, which gets what leads nowhere here: its layers cost more than most routes do. */
  readonly direct?: (request: IncomingMessage) => DirectRoute | undefined;
  /** Asked before express gets a request. Throws what is to be answered in its place. */
  readonly admit?: (request: IncomingMessage) => Promise<void>;
};

/**
 * An HTTP app that answers in JSON alone: request ids, one log line, span and measurement a request, JSON bodies within
 * limits, security headers, and problem details for everything that goes wrong. `build` adds the routes; routers are
 * mounted on plain paths, without parameters.
 */
export const createHttpApp = (options: HttpAppOptions, build: (router: Router) => void): RequestListener => {
  const { log, bodyLimitBytes = defaultBodyLimitBytes, direct, admit } = options;
  const answerError = createAnswerError(log);
  const router = Router({ caseSensitive: true });
  const app = express();
  app.set("query parser", (text: string | null) => queryOf(parseSearch(text ?? "")));
  app.set("etag", false);
  app.set("case sensitive routing", true);
  app.disable("x-powered-by");

  if (bodyLimitBytes !== "by-route") app.use(jsonBody(bodyLimitBytes));
  build(router);
  app.use((request, response, next) => {
    const methods = request.method === "OPTIONS" ? methodsOf(router, request.path) : [];
    if (methods.length === 0 || methods.includes("OPTIONS")) return next(); // no such path, or it answers by itself
    response.status(204).set("allow", methods.join(", ")).end();
  });
  app.use(router);
  app.use((request, _response, next) => {
    const methods = methodsOf(router, request.path);
    next(
      methods.length === 0
        ? new HeraldError("route-not-found", "path: there is no such route; GET /openapi.json lists all")
        : new HeraldError("method-not-allowed", `method: must be ${methods.join(", ")}`, {
            headers: { allow: methods.join(", ") },
          }),
    );
  });
  app.use(((error, _request, response, _next) => answerError(error, response)) satisfies ErrorRequestHandler);

  const servedByExpress = (request: IncomingMessage, response: ServerResponse): FoundRoute => ({
    // Express makes the request its own, and writes down there which route it took.
    pattern: () => patternOf(request as Request, router, answeredWith(response) !== undefined),
    serve: async () => {
      await admit?.(request);
      app(request, response);
    },
  });

  return createListener(log, (request, response) => {
    const found = direct?.(request);
    if (found) return { pattern: () => found.pattern, serve: found.serve };
    return servedByExpress(request, response);
  });
};
