import express, { type Express, Router } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { answerError } from "./answer-error.ts";
import { jsonBody } from "./json-body.ts";
import { observeRequest } from "./observe-request.ts";
import { methodsOf } from "./routes-of.ts";

/**
 * A body of 1,000 targets of 900 bytes each fits (a topic takes 30, an FCM token 170, a Web Push endpoint up to 500), and
 * with ids and headers it still fits one bus message, which is 1 MiB unless the broker is told otherwise.
 */
export const defaultBodyLimitBytes = 960 * 1024;

export type HttpAppOptions = {
  readonly log: Logger;
  /** How many proxies stand in front, whose `X-Forwarded-For` is believed; none by default. */
  readonly trustProxy?: number;
  /** After decompression; 960 KiB by default. `by-route`: routes read bodies themselves, by {@link readBody}. */
  readonly bodyLimitBytes?: number | "by-route";
};

/** Query parameters as plain strings; one that is given twice becomes a list, which no schema of a string accepts. */
const parseQueryString = (text: string | null): Record<string, unknown> => {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text ?? "")) {
    const before = query.get(name);
    query.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(query);
};

/**
 * An express app that answers in JSON alone: request ids, one log line, span and measurement a request, JSON bodies within
 * limits, security headers, and problem details for everything that goes wrong. `build` adds the routes; routers are
 * mounted on plain paths, without parameters.
 */
export const createHttpApp = (options: HttpAppOptions, build: (router: Router) => void): Express => {
  const { log, trustProxy = 0, bodyLimitBytes = defaultBodyLimitBytes } = options;
  const router = Router({ caseSensitive: true });
  const app = express();
  app.set("query parser", parseQueryString);
  app.set("trust proxy", trustProxy);
  app.set("etag", false);
  app.set("case sensitive routing", true);
  app.disable("x-powered-by");

  app.use(observeRequest({ log, router: () => router }));
  app.use(
    helmet({
      contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    }),
  );
  app.use((request, _response, next) => {
    next(hostProblem(request.rawHeaders, request.httpVersionMinor));
  });
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
  app.use(answerError(log));
  return app;
};

/** RFC 9112: exactly one Host. Two would let a proxy and Herald see different sites. */
const hostProblem = (rawHeaders: readonly string[], minor: number): HeraldError | undefined => {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === "host") hosts++;
  if (hosts === 1 || (hosts === 0 && minor === 0)) return undefined;
  return new HeraldError("malformed-request", "host: must be sent exactly once");
};
