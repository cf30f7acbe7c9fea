import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type ErrorRequestHandler, type Request, Router } from "express";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { parseSearch, queryOf } from "../parse-request.ts";
import { answeredWith, createAnswerError } from "./answer-error.ts";
import { jsonBody } from "./json-body.ts";
import { createObserver } from "./observe-request.ts";
import { methodsOf, patternOf } from "./routes-of.ts";
import { securityHeaders } from "./security-headers.ts";

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
  const observe = createObserver(log);
  const answerError = createAnswerError(log);
  const headers = securityHeaders();
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

  const serve = async (request: IncomingMessage, response: ServerResponse, found: DirectRoute | undefined) => {
    try {
      const problem = hostProblem(request.rawHeaders, request.httpVersionMinor);
      if (problem) throw problem;
      if (found) return await found.serve(request, response);
      await admit?.(request);
    } catch (error) {
      return answerError(error, response);
    }
    app(request, response);
  };

  return (request, response) => {
    const found = direct?.(request);
    // Express makes the request its own, and writes down there which route it took.
    const patternFound = () => patternOf(request as Request, router, answeredWith(response) !== undefined);
    observe(request, response, found ? () => found.pattern : patternFound, () => {
      for (const [name, value] of headers) response.setHeader(name, value);
      void serve(request, response, found);
    });
  };
};

/** RFC 9112: exactly one Host. Two would let a proxy and Herald see different sites. */
const hostProblem = (rawHeaders: readonly string[], minor: number): HeraldError | undefined => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && minor === 0)) return undefined;
  return new HeraldError("malformed-request", "host: must be sent exactly once");
};
